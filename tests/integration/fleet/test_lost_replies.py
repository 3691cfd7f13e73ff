"""A connection that breaks at exactly one script of a worker's: it is sent again over another, and all runs once.

Leases are of ten minutes: what is not sent again ends no turn in a test's time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brainq.contracts.status import TraceStatus
from tests.support.brains import diary, obedient
from tests.support.brains.diary import notes
from tests.support.brains.obedient import script
from tests.support.proxy import Proxy
from tests.support.pump import Pump, sqlite_url

OF_TURNS = ("turn_claim", "turn_begin", "step_begin", "step_commit", "turn_end")
OF_CALLS = ("call_claim", "call_start", "call_settle")
OF_THE_CHAIN = ("finalize_claim", "finalize_settle", "finalize_send", "finalize_finish")
CALLS = [("read", {"name": "r"}), ("write", {"name": "w"})]
PATIENT: dict[str, Any] = {"lease_s": 600.0, "beat_s": 60.0, "rering_s": 600.0, "result_after_failing_s": 60.0}


@pytest.fixture
def reached(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Proxy, Pump]]:
    """A worker that reaches Redis through a proxy, and has loaded each script."""
    monkeypatch.setenv(diary.DIRECTORY, str(tmp_path))
    host, _, port = redis_url.removeprefix("redis://").partition("/")[0].partition(":")
    with Proxy((host, int(port))) as proxy:
        url = f"redis://127.0.0.1:{proxy.port}/0"
        with Pump(obedient.brain, url, sqlite_url(tmp_path), **PATIENT) as worker:
            worker.finish(worker.submit("warm", script([CALLS[0]], [CALLS[1]])))
            yield proxy, worker


@pytest.mark.parametrize("is_done", [False, True], ids=["the request is lost", "the reply is lost"])
@pytest.mark.parametrize("names", [OF_TURNS, OF_CALLS, OF_THE_CHAIN], ids=["turns", "calls", "the chain"])
def test_a_script_is_sent_again_and_all_runs_once(
    reached: tuple[Proxy, Pump], names: tuple[str, ...], is_done: bool
) -> None:
    proxy, worker = reached
    for number, name in enumerate(names, start=1):
        proxy.strike(worker.wiring.state.scripts.loaded[name].sha.encode(), is_done=is_done)
        handle = worker.submit(f"s-{name}", script([CALLS[0]], [CALLS[1]]))
        result = worker.finish(handle, timeout_s=20)
        assert proxy.struck == number, f"{name}: the fault fired"
        assert result.text == "done", name
        trace = worker.wiring.state.calls.trace(handle.session_id, handle.turn_id)
        assert [(call.status, call.attempt) for call in trace] == [(TraceStatus.COMPLETED, 1)] * 2, name
        for what, times in (("thinking", 3), ("start", 2), ("usage", 1), ("turn_end", 1)):
            assert len(notes(what, turn=handle.turn_id)) == times, f"{name}: {what}"
