"""A server that hangs, dies, floods or lies costs one call: the next one is answered."""

from __future__ import annotations

import logging
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from brainq.contracts.call import Progress, ToolFailure, ToolSuccess, ToolTimeout, ToolUnknown
from brainq.engine.calls.executor import BoundedToolExecutor
from brainq.engine.tools.deadline import DeadlineToken
from brainq.engine.tools.mcp.catalogue import PinnedServer
from brainq.engine.tools.mcp.server import McpTool
from brainq.engine.tools.mcp.session import close_sessions
from brainq.engine.tools.mcp.tools import tools_of_server
from tests.integration.mcp.conftest import Call, looked
from tests.support.mcp_servers import faulty, noted
from tests.support.wait import wait_until
from tests.unit.engine.calls.support import context_for, is_running, run_in


def answers(call: Call) -> bool:
    outcome = call("echo", text="still there")
    return isinstance(outcome, ToolSuccess) and outcome.value == "still there"


def test_a_server_that_says_that_its_tools_have_changed_is_compared_again(call: Call, tmp_path: Path) -> None:
    assert isinstance(call("echo", text="a"), ToolSuccess)
    (tmp_path / "changed").touch()
    assert isinstance(call("echo", text="b"), ToolSuccess)  # nobody has said anything yet
    (tmp_path / "announce").touch()
    wait_until(lambda: not isinstance(call("echo", text="c"), ToolSuccess), "the list was asked for again")
    refused = call("echo", text="d")
    assert isinstance(refused, ToolFailure)
    assert "is no longer what was pinned" in refused.error
    assert len((tmp_path / "starts").read_text().splitlines()) == 1


def test_a_server_is_started_by_its_first_call_and_kept(call: Call, tmp_path: Path) -> None:
    assert noted(tmp_path, "starts") == []
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(call, "echo", text=str(number)) for number in range(8)]
        outcomes = [one.result() for one in asked]
    assert [getattr(outcome, "value", outcome) for outcome in outcomes] == [str(number) for number in range(8)]
    [pid] = noted(tmp_path, "starts")
    close_sessions()
    assert not is_running(int(pid))


def test_what_the_server_says_of_a_failure_is_the_tool_s_own_words(call: Call) -> None:
    outcome = call("refuse")
    assert isinstance(outcome, ToolFailure)
    assert (outcome.error, outcome.own_words, outcome.retryable) == ("the disk is full", True, False)


def test_what_the_server_was_given_in_secret_is_not_in_its_result(call: Call, tmp_path: Path) -> None:
    outcome = call("secret")
    assert isinstance(outcome, ToolSuccess)
    assert outcome.value == f"token [hidden] in {tmp_path}"


def test_a_server_gets_its_own_variables_and_none_of_the_workers_secrets(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-worker")
    monkeypatch.setenv("BRAINQ_SQL_URL", "postgresql://worker:secret@db/brainq")
    assert isinstance(call("echo", text="a"), ToolSuccess)
    [names] = noted(tmp_path, "environment")
    given = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "FAULTY_TOKEN"}
    assert "FAULTY_TOKEN" in names.split()
    assert set(names.split()) - given <= {"LC_CTYPE"}  # which Python sets itself


def test_a_picture_is_described_and_kept_where_its_bytes_are_one(call: Call) -> None:
    context = context_for(DeadlineToken(20.0))
    outcome = call("picture_png", context=context)
    assert isinstance(outcome, ToolSuccess)
    assert outcome.value == "[image: image/png, 67 bytes]\n[image: image/png, 300 bytes]"
    (kept,) = context.outputs().files
    assert (kept.media_type, len(kept.data)) == ("image/png", 67)


def test_what_a_server_says_of_its_progress_is_the_call_s_without_secrets(call: Call) -> None:
    context = context_for(DeadlineToken(20.0))
    assert isinstance(call("steps", context=context), ToolSuccess)
    assert context.newest_progress == Progress(done=2.5, total=3, message="token [hidden]: 2.5")


def test_a_read_whose_server_dies_is_asked_once_more(call: Call, tmp_path: Path) -> None:
    outcome = call("die_once")
    assert isinstance(outcome, ToolSuccess)
    assert outcome.value == "alive again"
    assert len(noted(tmp_path, "starts")) == 2


def test_a_read_that_kills_its_server_fails_and_the_next_call_is_answered(call: Call, tmp_path: Path) -> None:
    outcome = call("die")
    assert isinstance(outcome, ToolFailure)
    assert outcome.retryable
    assert "was lost before it answered" in outcome.error
    assert len(noted(tmp_path, "starts")) == 2
    assert answers(call)


def test_a_change_whose_server_dies_is_unknown_and_not_sent_again(call: Call, tmp_path: Path) -> None:
    outcome = call("die_write")
    assert isinstance(outcome, ToolUnknown)
    assert noted(tmp_path, "writes") == ["die"]
    assert answers(call)
    assert noted(tmp_path, "writes") == ["die"]


def test_a_change_after_its_server_was_killed_is_made_by_a_new_one(call: Call, tmp_path: Path) -> None:
    for number in range(5):
        assert isinstance(call("write", text=str(number)), ToolSuccess)
        pid = int(noted(tmp_path, "starts")[-1])
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda pid=pid: not is_running(pid), "the server is gone")
    assert noted(tmp_path, "writes") == ["0", "1", "2", "3", "4"]


def test_an_idempotent_change_whose_server_dies_is_sent_again(call: Call, tmp_path: Path) -> None:
    outcome = call("put_once")
    assert isinstance(outcome, ToolSuccess)
    assert noted(tmp_path, "writes") == ["put", "put"]


def test_the_argument_for_keys_gets_the_call_s_key_whatever_the_model_says(
    executor: BoundedToolExecutor, faulty_pinned: PinnedServer, tmp_path: Path
) -> None:
    server = faulty(tmp_path, tools={"write": McpTool(idempotency_argument="text")})
    [write] = [tool for tool in tools_of_server(server, faulty_pinned) if tool.name == "faulty__write"]
    context = context_for(DeadlineToken(20.0))
    for arguments in ({}, {"text": "a key of the model's"}):
        assert isinstance(run_in(executor, write, context, arguments), ToolSuccess)
    assert noted(tmp_path, "writes") == [context.idempotency_key] * 2


def test_a_read_that_hangs_is_cancelled_at_its_deadline_and_its_server_is_replaced(call: Call, tmp_path: Path) -> None:
    assert answers(call)
    outcome = call("hang", limit_s=0.3)
    assert isinstance(outcome, ToolTimeout)
    assert answers(call)
    assert len(noted(tmp_path, "cancelled")) == 1
    assert len(noted(tmp_path, "starts")) == 2


def test_a_change_that_is_cut_off_has_not_ended_before_its_server_has(call: Call, tmp_path: Path) -> None:
    assert answers(call), "its start is not counted"
    outcome = call("hang_write", limit_s=1.0)
    assert isinstance(outcome, ToolTimeout)
    [pid] = noted(tmp_path, "starts")
    if not outcome.still_running:
        assert not is_running(int(pid))
    wait_until(lambda: not is_running(int(pid)), "the server that hung is gone")
    assert answers(call)
    assert noted(tmp_path, "writes") == ["hang"]


@pytest.mark.parametrize("tool", ["flood", pytest.param("chatter", marks=pytest.mark.full)])
def test_a_server_that_floods_is_stopped(call: Call, tmp_path: Path, tool: str) -> None:
    outcome = call(tool)
    assert isinstance(outcome, ToolFailure)
    assert "sent too much output" in outcome.error
    assert len(noted(tmp_path, "starts")) == 1
    assert answers(call)


def test_a_result_that_does_not_fit_its_schema_fails_a_read_and_leaves_a_change_in_doubt(
    call: Call, tmp_path: Path
) -> None:
    assert isinstance(call("lie"), ToolFailure)
    assert isinstance(call("lie_write"), ToolUnknown)
    assert noted(tmp_path, "writes") == ["lie"]
    assert answers(call)
    assert len(noted(tmp_path, "starts")) == 1


def test_a_servers_own_pattern_and_text_do_not_stop_the_process(call: Call) -> None:
    assert isinstance(call("riddle"), ToolFailure)
    assert answers(call)


def test_a_tool_that_is_not_as_pinned_is_not_called(
    call: Call, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "changed").touch()
    with caplog.at_level(logging.WARNING):
        outcome = call("echo", text="all my keys")
    assert isinstance(outcome, ToolFailure)
    assert "no longer what was pinned" in outcome.error
    assert "new: brand_new; changed: echo" in caplog.text
    assert isinstance(call("secret"), ToolSuccess)


def test_a_server_that_does_not_start_is_told_and_tried_again_later(
    call: Call, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "die-at-start").touch()
    outcome = call("write")
    assert isinstance(outcome, ToolFailure)  # no change has begun: nothing is in doubt
    assert outcome.retryable
    assert "could not be opened" in outcome.error
    assert "sk-very-secret-1" not in caplog.text + outcome.error
    (tmp_path / "die-at-start").unlink()
    assert answers(call)


def test_a_malformed_tool_takes_no_other_away_and_says_what_is_wrong_with_it(
    call: Call, faulty_pinned: PinnedServer, tmp_path: Path
) -> None:
    (tmp_path / "malformed").touch()
    assert answers(call)
    assert isinstance(call("write", text="x"), ToolSuccess)
    refused = call("refuse")
    assert isinstance(refused, ToolFailure)
    assert "'refuse' of the MCP server 'faulty' cannot be used as the server lists it now (" in refused.error
    assert "errors.pydantic.dev" not in refused.error
    looked_at = looked(faulty(tmp_path))
    names = {tool.name for tool in faulty_pinned.tools} - {"refuse"} | {"untyped", "a.b", "a_b"}
    assert {tool.name for tool in looked_at.tools} == names
    why = looked_at.left_out
    assert why["no-schema"] == "inputSchema: it is required"
    assert {"null-schema", "string", "list", "hints", "hint", "output", "icons", "wrong"} < set(why)
    assert sum(name.startswith("#") for name in why) >= 5
    assert why["echo"] == "the server lists it twice"
    assert len(noted(tmp_path, "starts")) == 2
