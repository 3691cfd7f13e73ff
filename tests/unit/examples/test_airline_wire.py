"""The airline's recorded replies as a model server holds them, and what the example asks for over a wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from brainq.contracts.message import Message, ToolCall
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest
from brainq.errors import ProviderError
from examples.airline.agent import Options
from examples.airline.aimock import CUT_AFTER_CHUNKS, fixtures_of, wire_at
from examples.airline.model import LAST_WORDS, RecordedModel
from examples.airline.recorded import RecordedCall, RecordedSession, RecordedStep, RecordedTurn, save_sessions
from examples.airline.replay import main
from examples.airline.wire import Wire, WireModel

READ = RecordedStep("Let me look 😀.", (RecordedCall("get_user_details", {"user_id": "a"}, "read"),), 9, 3)
SESSION = RecordedSession(
    "run-001",
    "task 1",
    (RecordedTurn("hello", (READ, RecordedStep("Found.", ()))), RecordedTurn("bye", (RecordedStep("", READ.calls),))),
    "0" * 64,
)


def test_a_reply_is_found_by_its_session_and_by_how_much_was_said() -> None:
    fixtures = fixtures_of([SESSION])
    assert [fixture["match"] for fixture in fixtures] == [
        {"model": "run-001", "turnIndex": index} for index in range(4)
    ]
    first, _, calls, last = (fixture["response"] for fixture in fixtures)
    assert first == {
        "content": READ.text,
        "toolCalls": [{"id": "call_0", "name": "get_user_details", "arguments": '{"user_id": "a"}'}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
    }
    assert "content" not in calls
    assert last == {"content": LAST_WORDS}


def test_an_emoji_is_sent_in_halves() -> None:
    assert [fixture.get("chunkSize") for fixture in fixtures_of([SESSION])] == [1, None, None, None]


def test_every_so_many_replies_one_is_cut_off_once() -> None:
    fixtures = fixtures_of([SESSION], cut_every=2)
    assert [fixture.get("truncateAfterChunks") for fixture in fixtures] == [
        *(None, CUT_AFTER_CHUNKS, None),
        *(None, CUT_AFTER_CHUNKS, None),
    ]
    cut, whole = fixtures[1:3]
    assert cut["match"] == {**whole["match"], "sequenceIndex": 0}
    assert cut["response"] == whole["response"]


@pytest.mark.parametrize("url", ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/"])
def test_a_wire_is_where_the_sdk_looks_for_it(url: str) -> None:
    assert wire_at(url, "openai") == Wire("openai", "http://h:1/v1")
    assert wire_at(url, "anthropic") == Wire("anthropic", "http://h:1")


@pytest.mark.parametrize("wire", [None, Wire("anthropic", "http://h:1")])
def test_workers_read_the_options_they_are_handed(wire: Wire | None, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(Path("/r"), Path("/d"), False, 0.5, wire)
    for name, value in options.environment().items():
        monkeypatch.setenv(name, value)
    assert Options.read(options.environment()) == options


class Listening:
    """A provider that keeps what it was asked."""

    name = "listening"

    def __init__(self) -> None:
        self.asked: list[ModelRequest] = []

    def generate(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request)
        return ModelReply(text="ok")

    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        yield ModelChunk(reply=self.generate(request))


def request(*messages: Message) -> ModelRequest:
    return ModelRequest(
        model="listening", messages=messages, timeout_s=1.0, turn_id="run-001-t01", step=2, session_id="run-001"
    )


SAID = (
    Message(role="user", content="hello", turn="run-001-t01"),
    Message(
        role="assistant",
        calls=(ToolCall(id="c1-0", name="get_user_details", arguments={"user_id": "a"}),),
        turn="run-001-t01",
    ),
    Message(role="tool", content="{}", call_id="c1-0", name="get_user_details", turn="run-001-t01"),
)
ADDED = Message(role="user", content="Remembered: the customer likes windows.")


@pytest.fixture
def recorded(tmp_path: Path) -> RecordedModel:
    save_sessions(tmp_path / "r.jsonl.gz", [SESSION])
    return RecordedModel(tmp_path / "r.jsonl.gz")


def test_a_session_is_asked_for_as_the_model_of_its_name(recorded: RecordedModel) -> None:
    provider = Listening()
    model = WireModel(recorded, provider)
    assert model.generate(request(*SAID)).text == "ok"
    (chunk,) = model.generate_stream(request(ADDED, *SAID))  # what a preparer adds is not held against it
    assert chunk.reply is not None
    assert [asked.model for asked in provider.asked] == ["run-001", "run-001"]
    assert provider.asked[1].messages == (ADDED, *SAID)


def test_a_conversation_that_went_otherwise_is_not_sent(recorded: RecordedModel) -> None:
    provider = Listening()
    with pytest.raises(ProviderError, match="the conversation has 2 messages, recorded were 3"):
        WireModel(recorded, provider).generate(request(*SAID[:2]))
    assert provider.asked == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--faults"], "need --wire"),
        (["--model-url", "http://h:1"], "need --wire"),
        (["--wire", "openai", "--model-url", "http://h:1", "--faults"], "leave --model-url out"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: list[str], said: str) -> None:
    app = typer.Typer()
    app.command()(main)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_the_arguments_of_calls_arrive_as_they_were_recorded() -> None:
    wanted = {"payment": [{"amount": 1.5, "name": "Ærøskøbing"}], "nothing": None}
    step = RecordedStep("", (RecordedCall("book_reservation", wanted, "write"),))
    session = RecordedSession("run-001", "x", (RecordedTurn("u", (step,)),), "")
    assert json.loads(fixtures_of([session])[0]["response"]["toolCalls"][0]["arguments"]) == wanted
