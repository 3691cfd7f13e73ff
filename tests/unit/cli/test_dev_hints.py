"""What brainq dev prints and which ports it takes."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Literal

import pytest

from brainq import Brain, Effect
from brainq.app.devserver.ports import free_port, listener_at, require_free_port
from brainq.cli.dev.stack import example_message, http_line
from brainq.engine.brain.brains import load_brains
from brainq.engine.models.offline import read_message
from brainq.errors import BrainNotLoaded, SetupError

# What `brainq dev` tells a newcomer: the message to try, the address, and where app.py is wrong.


def test_the_first_message_makes_the_stand_in_call_a_tool_that_only_reads() -> None:
    brain = Brain("desk", "offline:rules")

    @brain.tool(effect=Effect.NETWORK)
    def refund(order: str, amount: float) -> str:
        "Pay money back."
        return f"{order} {amount}"

    assert example_message(brain) == "refund(order='A1', amount=1)"

    @brain.tool(effect=Effect.READ_ONLY)
    def find(order: str, how: Literal["fast", "all"], most: int, whole: bool, also: list[str], note: str = "") -> str:
        "What an order cost."
        return f"{order} {how} {most} {whole} {also} {note}"

    message = example_message(brain)
    assert message == "find(order='A1', how='fast', most=1, whole=True, also=[])"
    (call,) = read_message(message, tuple(brain.tools.specs.values()))
    assert (call.tool.name, call.missing) == ("find", ())
    assert example_message(Brain("bare", "offline:rules")) == "Hello!"


def test_an_address_says_whose_port_it_is_not() -> None:
    assert "taken" not in http_line(True, 8321, 8321).plain
    assert "port 8321 is in use by another program" in http_line(True, 40_001, 8321).plain


@pytest.mark.parametrize("text", ["brain = 1 / 0", "brain = (", "import nothing_of_this_name"])
def test_a_mistake_in_the_default_file_is_named_without_a_word_on_other_brains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (tmp_path / "app.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "app", raising=False)
    with pytest.raises(BrainNotLoaded) as wrong:
        load_brains("app:brain")
    assert "app.py:1" in str(wrong.value)
    assert "no brain was named" not in str(wrong.value)


# A port that is taken is said before anything starts.


def test_a_free_port_is_fine() -> None:
    require_free_port("127.0.0.1", free_port(), "Flower", "--port")


def test_a_listener_is_where_it_is_wanted_or_at_a_free_port_and_keeps_it() -> None:
    with listener_at("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with listener_at("127.0.0.1", port) as second:
            assert second.getsockname()[1] not in (0, port)
        with pytest.raises(SetupError, match="is taken"):
            require_free_port("127.0.0.1", port, "Flower", "--port")
    with listener_at("127.0.0.1", port) as again:
        assert again.getsockname()[1] == port


def test_a_taken_port_is_named_with_who_wants_it_and_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(
            SetupError, match=rf"Flower cannot listen on port {port} of 127\.0\.0\.1, which is taken; .*--port"
        ):
            require_free_port("127.0.0.1", port, "Flower", "--port")
