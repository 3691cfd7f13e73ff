"""The offline model: which calls it asks for, and that it says only what results say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from brainq import ScriptedProvider
from brainq.contracts.message import Message
from brainq.contracts.model import ModelRequest
from examples.vault.model import choose_model
from examples.vault.rules import reply

LOOPS = [
    {"path": "p/boat.md", "title": "Boat", "line": 3, "text": "paint it"},
    {"path": "p/garden.md", "title": "Garden", "line": 5, "text": "buy soil"},
]
Step = tuple[list[str], str]


def play(message: str, *results: Any, turn_id: str = "t1", before: tuple[Message, ...] = ()) -> Step:
    """The names of the calls asked for and the text, once `results` have come (an Exception is a failed call)."""
    tools = [
        Message(
            role="tool",
            turn=turn_id,
            is_error=isinstance(result, Exception),
            content=str(result) if isinstance(result, Exception) else json.dumps(result),
        )
        for result in results
    ]
    messages = (*before, Message(role="user", content=message, turn=turn_id), *tools)
    answer = reply(ModelRequest(model="m", messages=messages, timeout_s=1, turn_id=turn_id))
    return [call.name for call in answer.calls], answer.text


def test_open_loops_asks_for_both_at_once_and_then_names_their_places() -> None:
    asked = "What are my open loops about the boat?"
    assert play(asked) == (["list_open_loops", "local_search"], "")
    calls, text = play(asked, LOOPS, [{"path": "p/boat.md", "title": "Boat"}])
    assert calls == []
    assert text == "1 of your 2 open loops are about the boat:\n- paint it (p/boat.md, line 3)"


def test_no_loop_about_a_topic_is_said() -> None:
    _, text = play("open loops about sailing", LOOPS, [])
    assert text == "None of your 2 open loops is about sailing."


def test_all_open_loops_need_one_call() -> None:
    assert play("What are my open loops?") == (["list_open_loops"], "")
    assert play("What are my open loops?", LOOPS)[1].startswith("You have 2 open loops:")


def test_noting_down_searches_reads_and_appends() -> None:
    asked = "Note down that the hull leaks."
    assert play(asked)[0] == ["local_search"]
    hits = [{"path": "p/boat.md", "title": "Boat"}]
    assert play(asked, hits)[0] == ["read_note"]
    note = {"path": "p/boat.md", "title": "Boat", "text": "", "open_loops": 2}
    assert play(asked, hits, note)[0] == ["write_note"]
    assert play(asked, hits, note, {"path": "p/boat.md"})[1].endswith("keeps its 2 open loops:\n- The hull leaks.")


def test_noting_down_where_nothing_fits_makes_a_note() -> None:
    assert play("Note down: zebra", [])[0] == ["write_note"]
    assert play("Note down: zebra", [], {})[1] == "No note was about this, so I made inbox/zebra.md."


def test_a_named_note_is_not_searched_for() -> None:
    assert play("Note down in p/boat.md that it leaks")[0] == ["read_note"]


def test_fetching_saves_the_page_with_links() -> None:
    asked = "Fetch http://x.example/a and keep it."
    assert play(asked)[0] == ["fetch_url"]
    page = {"url": "http://x.example/a", "title": "On Keys", "text": "First.\n\nSecond."}
    assert play(asked, page)[0] == ["local_search"]
    hits = [{"path": "p/keys.md", "title": "Keys"}]
    assert play(asked, page, hits)[0] == ["write_note"]
    assert "reading/on-keys.md, linked to Keys (p/keys.md)" in play(asked, page, hits, {})[1]


def test_a_page_that_fails_is_not_saved() -> None:
    calls, text = play("Fetch http://x.example/a", RuntimeError("The tool failed: 404."))
    assert calls == []
    assert text == "I could not fetch http://x.example/a, so nothing was saved. The tool failed: 404."


def test_deleting_reads_first_and_says_what_is_gone() -> None:
    asked = "Delete the note p/boat"
    assert play(asked)[0] == ["read_note"]
    note = {"path": "p/boat.md", "title": "Boat", "text": "", "open_loops": 1}
    assert play(asked, note)[0] == ["delete_note"]
    _, text = play(asked, note, {"linked_from": ["home.md"]})
    assert text == "I deleted “Boat” (p/boat.md); it held 1 open loop. These notes still link to it: home.md."


@pytest.mark.parametrize(
    ("asked", "results"),
    [
        ("Delete the note p/lost", [RuntimeError("The tool failed: there is no note.")]),
        ("Delete the note on yachts", [[{"path": "p/boat.md", "title": "Boat"}]]),
        ("Delete the note on yachts", [[]]),
    ],
)
def test_what_is_not_found_is_not_deleted(asked: str, results: list[Any]) -> None:
    calls, text = play(asked, *results)
    assert calls == []
    assert "deleted nothing" in text


def test_anything_else_is_answered_from_the_notes() -> None:
    assert play("What do I know about boats?")[0] == ["get_context_pack"]
    pack = {
        "notes": [{"path": "b.md", "title": "B", "excerpt": "It floats."}],
        "open_loops": [{"line": 1, "text": "sell"}],
    }
    assert (
        play("What do I know about boats?", pack)[1]
        == "Your notes on boats:\n- B (b.md): It floats.\nStill open in B: sell."
    )
    assert play("boats?", {"notes": [], "open_loops": []})[1] == "Your notes say nothing about boats."


def test_earlier_turns_do_not_count_as_results() -> None:
    before = (
        Message(role="user", content="open loops", turn="t0"),
        Message(role="tool", content=json.dumps(LOOPS), turn="t0"),
    )
    assert play("open loops", before=before)[0] == ["list_open_loops"]


def test_a_second_message_in_the_same_turn_is_answered_too() -> None:
    first = Message(role="user", content="What are my open loops?", turn="t1")
    done = Message(role="tool", content=json.dumps(LOOPS), turn="t1")
    assert play("tell me about boats", before=(first, done))[0] == ["get_context_pack"]
    _, text = play("tell me about boats", {"notes": [], "open_loops": []}, before=(first, done))
    assert text.startswith("You have 2 open loops:")
    assert text.endswith("Your notes say nothing about boats.")


@pytest.mark.parametrize(
    ("environment", "model"),
    [
        ({"OPENAI_API_KEY": "k"}, "openai:gpt-4.1-mini"),
        ({"OPENAI_API_KEY": "k", "BRAINQ_MODEL": "gpt-5"}, "openai:gpt-5"),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "BRAINQ_MODEL": "qwen3:8b"}, "openai:qwen3:8b"),
        ({"ANTHROPIC_API_KEY": "k"}, "anthropic:claude-haiku-4-5"),
    ],
)
def test_a_key_chooses_a_real_model(environment: dict[str, str], model: str) -> None:
    assert choose_model(environment) == model


@pytest.mark.parametrize("environment", [{}, {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, {"BRAINQ_MODEL": "gpt-5"}])
def test_without_a_key_the_rules_answer(environment: dict[str, str]) -> None:
    assert isinstance(choose_model(environment), ScriptedProvider)


def test_a_note_is_sent_once_also_when_nobody_knows_whether_it_arrived() -> None:
    asked = "Send the note b to http://here/inbox"
    assert play(asked)[0] == ["send_note"]
    assert play(asked, {"path": "b.md", "status": 204}) == ([], "I sent b.md to http://here/inbox, which answered 204.")
    calls, text = play(asked, RuntimeError("It may or may not have taken effect."))
    assert calls == []
    assert text == "I did not send b again. It may or may not have taken effect."
