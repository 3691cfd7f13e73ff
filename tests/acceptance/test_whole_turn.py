"""One turn of the vault example through all stages, read back from SQL, on SQLite and on Postgres."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from brainq.contracts.event import EventKind
from brainq.contracts.status import Ending
from examples.vault.app import PROMPT_ID, owner_of
from examples.vault.vault import SHIPPED_NOTES
from tests.support.brains import diary
from tests.support.brains.diary import notes
from tests.support.brains.priced_vault import ENVIRONMENT, MODEL, REMEMBERED, REVIEW, SUMMARY
from tests.support.postgres import postgres_url
from tests.support.wait import wait_until
from tests.support.world import World

PLANTS = "Note down in inbox/plants.md that I prefer Latin names. " + "Achillea, Betonica, Campanula. " * 200


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.full)])
def vault_world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    shutil.copytree(SHIPPED_NOTES, tmp_path / "notes")
    monkeypatch.setenv(diary.DIRECTORY, str(tmp_path / "world"))
    environment = {**ENVIRONMENT, "VAULT_DIR": str(tmp_path / "notes")}
    with ExitStack() as stack:
        sql_url = stack.enter_context(postgres_url()) if request.param == "postgres" else ""
        world = World(tmp_path / "world", sql_url=sql_url, environment=environment)
        stack.callback(world.stop)
        yield world.start()


def test_a_turn_goes_through_all_stages(vault_world: World) -> None:
    world, store = vault_world, vault_world.wiring.store
    first = world.client.submit("s1", PLANTS, prompt_id=PROMPT_ID)
    assert first.result(timeout_s=60).ending is Ending.COMPLETED
    world.done(first)

    handle = world.client.submit(
        "s1",
        "Delete the note ../../secret",
        prompt_id=PROMPT_ID,
        prompt_version="7",
        prompt_tags=("test",),
        limits={"max_context_tokens": 3000},
    )
    result = handle.result(timeout_s=60)
    world.done(handle)
    turn_id = handle.turn_id
    assert (result.ending, result.steps) == (Ending.COMPLETED, 2)
    assert result.text.startswith("I deleted nothing.")

    # Memory of the turn before and the pack, side by side and before the first step; no tool call was paid for them.
    assert [entry.call_id for entry in world.trace(handle)] == ["c0-0", "c0-1", "c1-0"]
    assert result.tool_calls == 1
    pack = json.loads(result.context_pack_json or "")
    assert any("Latin names" in preference for preference in pack["preferences"])
    assert pack["relevant_facts"]

    # Selection: five of seven tools, the same at both steps.
    shown = [row["tools"] for row in notes("asked", turn=turn_id)]
    assert shown[0] == shown[1]
    assert len(shown[0]) == 5
    assert "delete_note" in shown[0]

    # Streaming, reflection, compaction: events without gaps, and text that joins to the answer.
    events = world.all_events(handle)
    streamed = "".join(
        str(event.data["text"]) for event in events if event.kind is EventKind.TEXT_DELTA and event.data["step"] == 2
    )
    assert result.text.startswith(streamed)
    assert streamed
    assert [event.data["stub"] for event in events if event.kind is EventKind.REFLECTION] == [""]
    compactions = [event.data for event in events if event.kind is EventKind.COMPACTION]
    assert [data["method"] for data in compactions] == ["model"]

    # Who ran it says that it is alive, and the turn is a timeline of bars that have all ended.
    fleet, bars = world.client.fleet(), handle.timeline().bars
    assert {pool.name: len(pool.workers) for pool in fleet.pools} == dict.fromkeys(
        ("coordinator", "parallel", "serial", "finalizer"), 1
    )
    assert all(pool.threads > 0 for pool in fleet.pools)
    assert all(bar.to_ms is not None for bar in bars)
    assert {"step:1", "step:2", "call:c0-0", "call:c1-0", "reflection:1", "compaction:1", "finalizer"} <= {
        bar.id for bar in bars
    }

    # What SQL has of it.
    wait_until(
        lambda: [row.state for row in store.judgements.of_turn(turn_id)] == ["done", "done"], "the turn is judged"
    )
    assert world.row_counts(handle)["messages"] == 2
    said = store.transcripts.of_turn(turn_id)
    assert [message.role for message in said] == ["user", "assistant", "tool", "user", "assistant"]
    assert REVIEW in said[3].content
    long_one = store.transcripts.of_turn(first.turn_id)
    assert long_one[0].content == PLANTS
    assert {row.method for row in store.judgements.of_turn(turn_id)} == {"model"}
    assert [row.score for row in store.judgements.of_turn(turn_id)] == [0.9, 0.9]
    memories = {(row.kind, row.text): row.times_seen for row in store.memories.list(owner_of("s1"))}
    assert memories["fact", REMEMBERED] == 2  # both turns said so: one row
    assert store.observations.of_turn(turn_id) or store.observations.list(owner_of("s1"))
    assert [row.state for row in store.steps.of_turn(turn_id)].count("done") == len(store.steps.of_turn(turn_id))
    decision = store.decisions.get(turn_id)
    assert decision is not None
    assert (decision.key, decision.strategy, decision.tools, decision.turn_number) == (
        "support.chat.turn",
        "tool_assisted",
        ("read_note",),
        2,
    )
    assert (decision.prompt_id, decision.prompt_version, decision.prompt_tags) == (PROMPT_ID, "7", ("test",))
    assert decision.usage.input_tokens == result.input_tokens
    assert decision.context_hash
    assert decision.elapsed_ms > 0

    # What it cost, a model call at a time.
    all_spends = store.spends.of_turn(turn_id)
    spends = [spend for spend in all_spends if spend.kind not in ("memory", "judge")]
    assert {spend.kind for spend in all_spends} - {spend.kind for spend in spends} == {"memory", "judge"}
    assert [spend.kind for spend in spends] == ["compaction", "step", "reflection", "step"]
    assert {spend.model for spend in spends} == {MODEL}
    assert all(spend.cost_usd and spend.cost_usd > 0 for spend in spends)
    assert sum(spend.cost_usd or 0 for spend in spends) == pytest.approx(result.cost_usd)
    assert sum(spend.input_tokens for spend in spends) == result.input_tokens
    kept = store.turns.result(turn_id)
    assert kept == result
    assert SUMMARY in history_text(world)


def history_text(world: World) -> str:
    client: Any = world.wiring.state.redis
    return " ".join(client.lrange(world.wiring.state.keys.of_session("s1", "history"), 0, -1))
