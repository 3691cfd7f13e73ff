"""`brainq dev` in one terminal, the other commands in another: real processes, nothing set up beforehand."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from brainq.adapters.redis.connection import make_client
from brainq.app.devserver.ports import free_port
from brainq.app.devserver.redis_server import running_url
from brainq.errors import ExitCode
from tests.support.commands import Brainq, commands
from tests.support.foreign import push_with_kombu
from tests.support.wait import wait_until

ROOT = Path(__file__).parents[2]
BRAIN = """
import time

from brainq import Brain, Effect, ScriptedProvider
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import ScriptedFailure, calls, fails, says


def answer(request: ModelRequest) -> ModelReply | ScriptedFailure:
    asked = [message.content for message in request.messages if message.role == "user"][-1]
    if asked == "fail":
        return fails("auth", retryable=False, message="no key")
    if asked == "wait" and request.step == 1:
        return calls(("sleep", {}))
    if request.step == 1:
        return calls(("look", {"what": "a"}), ("look", {"what": "b"}), ("order", {}), text="Let me see. ")
    return says("Ordered.")


brain = Brain("shop", ScriptedProvider(rules=answer))


@brain.tool(effect=Effect.READ_ONLY)
def look(what: str) -> str:
    "Look."
    return what


@brain.tool(effect=Effect.NETWORK)
def order() -> str:
    "Order."
    return "ok"


@brain.tool(effect=Effect.READ_ONLY, timeout_s=60)
def sleep() -> str:
    "Sleep."
    time.sleep(60)
    return "ok"
"""


@dataclass(frozen=True)
class Dev:
    """A running `brainq dev`, and `brainq` commands in another terminal of its directory."""

    directory: Path
    process: subprocess.Popen[bytes]
    run: Callable[..., subprocess.CompletedProcess[str]]

    @property
    def output(self) -> str:
        return (self.directory / "dev.out").read_text()


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dev]:
    directory = tmp_path_factory.mktemp("shop")
    (directory / "shop.py").write_text(BRAIN)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BRAINQ_")}
    environment |= {"PYTHONPATH": str(ROOT), "BRAINQ_APP": "shop:brain", "BRAINQ_HTTP_PORT": str(free_port())}
    brainq = [sys.executable, "-m", "brainq.cli.main"]

    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*brainq, *arguments],
            cwd=directory,
            env=environment | more,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    with (directory / "dev.out").open("wb") as output:
        process = subprocess.Popen(
            [*brainq, "dev", "--port", str(free_port())],
            cwd=directory,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    running = Dev(directory, process, run)
    try:
        wait_until(lambda: process.poll() is not None or "ready in" in running.output, "brainq dev is ready", 150)
        assert process.poll() is None, running.output
        yield running
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(120)


@pytest.fixture
def brainq(dev: Dev, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Brainq:
    """Commands as `dev.run`, in this process: what is not about a process of its own is not worth one."""
    for name in [name for name in os.environ if name.startswith("BRAINQ_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("BRAINQ_APP", "shop:brain")
    monkeypatch.chdir(dev.directory)
    monkeypatch.syspath_prepend(str(dev.directory))
    return commands(monkeypatch, capsys)


def worker_pids(directory: Path) -> list[int]:
    return [int(path.read_text()) for path in sorted((directory / ".brainq" / "logs").glob("*.ready"))]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_dev_says_where_things_are_and_what_to_type_next(dev: Dev) -> None:
    for expected in (
        "shop:brain, 3 tools: 2 read_only, 1 network",
        "redis.sock",
        "brainq.db",
        "logs/*.log",
        'brainq -A shop:brain submit s1 "Hello!" --follow',
    ):
        wait_until(lambda said=expected: said in dev.output, f"it says {expected!r}")


def test_dev_serves_turns_over_http_where_it_says(dev: Dev) -> None:
    found = re.search(r"http +(http://127\.0\.0\.1:\d+)", dev.output)
    assert found is not None, dev.output
    turn = json.dumps({"session_id": "over-http", "user_message": "hello"}).encode()
    headers = {"Content-Type": "application/json", "Prefer": "wait=30"}
    with urlopen(Request(f"{found[1]}/v1/turns", turn, headers), timeout=40) as answer:
        assert answer.status == 200
        assert json.load(answer)["text"].endswith("Ordered.")


def test_a_turn_is_followed_and_looked_at_from_another_terminal(dev: Dev, brainq: Brainq) -> None:
    followed = dev.run("submit", "s1", "hello", "--follow", "--request-key", "k1")
    assert followed.returncode == 0, followed.stderr
    said = [line.split() for line in followed.stdout.splitlines()]
    assert [line[1:3] for line in said if line[1] == "turn"] == [
        ["turn", "active"],
        ["turn", "closing"],
        ["turn", "completed"],
    ]
    assert "│ Ordered." in followed.stdout
    assert re.search(r"c1-2 +completed +order +network", followed.stdout)
    assert re.search(r"completed · answered · 2 steps · 3 calls", followed.stderr)

    shown = json.loads(brainq("show", "k1", "--json").out)
    assert [call["status"] for call in shown["redis"]["trace"]] == ["completed"] * 3
    assert [(intent["call_id"], intent["state"]) for intent in shown["intents"]] == [("c1-2", "done")]
    events = [json.loads(line) for line in brainq("tail", "k1", "--json").out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["kind"] == "result"
    listed = json.loads(brainq("list", "--json").out)
    assert shown["turn_id"] in [row["turn_id"] for row in listed]


def test_a_failed_turn_is_1_and_json_is_the_result(brainq: Brainq) -> None:
    failed = brainq("submit", "s2", "fail", "--json")
    assert failed.code == ExitCode.FAILED
    result = json.loads(failed.out)
    assert (result["ending"], result["error"]) == ("failed", "no key")


def test_a_turn_waits_and_is_cancelled_from_another_terminal(dev: Dev, brainq: Brainq) -> None:
    turn = brainq("submit", "s3", "wait", "--no-wait").out.strip()
    assert "c1-0 sleep" in wait_until(lambda: _next_with(brainq, turn, "waits for"), "the call shows", 60, 0.1)
    assert dev.run("cancel", turn, "--reason", "enough").returncode == 0
    brainq("tail", turn)
    assert json.loads(brainq("show", turn, "--json").out)["result"]["ending"] == "cancelled"


def test_a_turn_that_times_out_is_3(brainq: Brainq) -> None:
    assert brainq("submit", "s4", "wait", "--limits", "timeout_s=1").code == ExitCode.TIMED_OUT


def test_doctor_finds_the_worker_of_all_pools(brainq: Brainq) -> None:
    def answers() -> bool:
        (row,) = [row for row in json.loads(brainq("doctor", "--json").out) if row["name"] == "workers"]
        return row["level"] == "ok" and row["said"].startswith("1 worker: all@")

    wait_until(answers, "it answers within the second that it asks for", every_s=0.5)


def test_a_producer_without_brainq_sends_to_the_port_that_dev_prints(dev: Dev, brainq: Brainq) -> None:
    url = next(line.split()[1] for line in dev.output.splitlines() if line.split()[:1] == ["port"])
    push_with_kombu(url, {"turn_id": "order-17", "session_id": "monday", "user_message": "hello"})
    wait_until(lambda: "order-17" in brainq("list", "--json").out, "the turn is accepted", 60, 0.1)


@pytest.mark.full
def test_a_second_dev_here_names_the_first_and_starts_nothing(dev: Dev) -> None:
    before = worker_pids(dev.directory)
    second = dev.run("dev")
    assert second.returncode == ExitCode.REFUSED
    assert f"`brainq dev` (process {dev.process.pid}) already runs the coordinator pool" in second.stderr
    assert worker_pids(dev.directory) == before


def test_a_killed_worker_is_started_again_and_the_gateway_stays(dev: Dev) -> None:
    before = worker_pids(dev.directory)
    os.kill(before[0], signal.SIGKILL)
    wait_until(lambda: "ended (signal SIGKILL); restarting it" in dev.output, "dev tells of it")
    wait_until(lambda: "all is running again" in dev.output, "the worker is back", 60)
    now = worker_pids(dev.directory)
    assert now[0] != before[0]
    assert now[1:] == before[1:]


def test_a_killed_redis_is_started_again_and_what_the_workers_say_of_it_is_theirs(dev: Dev, brainq: Brainq) -> None:
    url = running_url(dev.directory / ".brainq" / "redis")
    assert url is not None
    with make_client(url) as client:
        os.kill(int(client.info("server")["process_id"]), signal.SIGKILL)
    wait_until(lambda: "Trying to re-establish the connection" in dev.output, "a worker tells of it", 60)
    wait_until(lambda: "redis is running again" in dev.output, "Redis is back", 60)
    assert brainq("submit", "s5", "hello").code == ExitCode.OK
    assert "In Celery 5.1" not in dev.output


@pytest.mark.full
def test_up_keeps_the_named_pools_running_until_it_is_told_to_stop(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(BRAIN)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BRAINQ_")}
    out = tmp_path / "up.out"
    with out.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "brainq.cli.main", "up", "-A", "shop:brain", "parallel"],
            cwd=tmp_path,
            env=environment | {"PYTHONPATH": str(ROOT)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        (first,) = wait_until(lambda: worker_pids(tmp_path), "the worker is ready", 90)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: "parallel is running again" in out.read_text(), "the worker is back", 60)
        (second,) = worker_pids(tmp_path)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, out.read_text()
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: not is_alive(second), "the worker is gone")
    assert second != first
    said = out.read_text()
    assert "running parallel" in said
    assert "ready\n" in said
    assert "celery@" not in said, "what a worker says while it starts is not shown"
    assert said.endswith("stopped\n")
    assert "parallel ended (signal SIGKILL); restarting it now" in said
    assert "Traceback" not in said


@pytest.mark.full
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_dev_leaves_nothing_running(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "shop.py").write_text(BRAIN)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BRAINQ_")}
    environment |= {"PYTHONPATH": str(ROOT)}
    out = tmp_path / "dev.out"
    with out.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "brainq.cli.main", "dev", "--pools", "--no-http", "-A", "shop:brain"],
            cwd=tmp_path,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            # A shell's background jobs ignore the interrupt, and so would all that they start.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    try:
        wait_until(lambda: process.poll() is not None or "ready in" in out.read_text(), "brainq dev is ready", 150)
        pids = worker_pids(tmp_path)
        assert len(pids) == 4, out.read_text()
        process.send_signal(how)
        assert process.wait(120) == (0 if how is signal.SIGINT else -signal.SIGKILL), out.read_text()
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: not any(is_alive(pid) for pid in pids), "all workers are gone", 60)
    wait_until(lambda: running_url(tmp_path / ".brainq" / "redis") is None, "Redis is gone", 60)
    assert "Traceback" not in out.read_text()


def _next_with(brainq: Brainq, turn: str, words: str) -> str:
    said = str(json.loads(brainq("show", turn, "--json").out)["next"])
    return said if words in said else ""
