"""What a user gets: the wheel, its console command in a virtual environment of its own, an empty directory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sysconfig
import venv
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from brainq.app.devserver.redis_server import running_url
from brainq.errors import ExitCode
from tests.support.wait import wait_until

ROOT = Path(__file__).parents[2]
POOLS = ("coordinator", "parallel", "serial", "finalizer")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("dist")), versions=["standard"])
    return Path(str(built))


def test_the_wheel_has_one_top_level_package_with_all_its_data(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name.partition("/")[0] for name in names} == {"brainq", "brainq-0.1.0.dist-info"}
    assert {f"brainq/workers/{pool}.py" for pool in POOLS} <= names
    files = [path for path in (ROOT / "brainq").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {str(path.relative_to(ROOT)) for path in files} <= names
    for needed in ("workers/flowerconfig.py", "cli/project/app.py", "cli/project/gitignore", "py.typed"):
        assert f"brainq/{needed}" in names
    for needed in ("index.html", "main.js", "views/turn.js", "style/1_tokens.css", "icon.svg"):
        assert f"brainq/gateway/page/assets/{needed}" in names


@dataclass(frozen=True)
class Place:
    """An empty directory, and a virtual environment with the wheel in it."""

    directory: Path
    bin: Path
    environment: dict[str, str]

    def brainq(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return self.run([str(self.bin / "brainq"), *arguments], self.directory / "shop", **more)

    def run(self, command: Sequence[str], cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            list(command),
            cwd=cwd,
            env=self.environment | more,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )


@pytest.fixture(scope="module")
def place(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    root = tmp_path_factory.mktemp("newcomer")
    venv.create(root / "venv", with_pip=True)
    (site,) = (root / "venv" / "lib").glob("python3*/site-packages")
    # What brainq stands on is taken from here; a `.pth` inside it, such as that of brainq's own checkout, is not read.
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"])
    pip = [str(root / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True, timeout=200)
    (root / "empty").mkdir()
    kept = ("PATH", "HOME", "LANG", "TMPDIR")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    return Place(root / "empty", root / "venv" / "bin", environment)


@dataclass(frozen=True)
class Dev:
    process: subprocess.Popen[bytes]
    out: Path

    @property
    def said(self) -> str:
        return self.out.read_text()


@pytest.fixture(scope="module")
def dev(place: Place) -> Iterator[Dev]:
    made = place.run([str(place.bin / "brainq"), "init", "shop"], place.directory)
    assert made.returncode == 0, made.stderr
    shop = place.directory / "shop"
    out = place.directory / "dev.out"
    with out.open("wb") as output:
        process = subprocess.Popen(
            [str(place.bin / "brainq"), "dev", "--reload"],
            cwd=shop,
            env=place.environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            # A shell's background jobs ignore the interrupt, and so would all that they start.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    running = Dev(process, out)
    try:
        wait_until(lambda: process.poll() is not None or "ready in" in running.said, "brainq dev is ready", 90)
        assert process.poll() is None, running.said
        yield running
    finally:
        process.kill()
        process.wait()


@pytest.mark.full
def test_it_is_the_wheel_that_runs(place: Place) -> None:
    asked = place.run(
        [str(place.bin / "python"), "-c", "import brainq.workers as w; print(w.__file__)"], place.directory
    )
    assert str(place.bin.parent) in asked.stdout
    assert str(ROOT) not in asked.stdout
    top = place.run([str(place.bin / "python"), "-c", "import workers"], place.directory)
    assert "No module named 'workers'" in top.stderr


def runs_its_tools_and_says_what_a_real_model_takes(place: Place, dev: Dev) -> None:
    assert "no language model" in dev.said
    assert "OPENAI_API_KEY" in dev.said
    first = place.brainq("submit", "monday", "count apples, restock apples by 5", "--json")
    assert first.returncode == 0, first.stderr
    said = json.loads(first.stdout)["text"]
    assert "count(item='apples') said: 3" in said
    assert "restock(item='apples', amount=5) said: apples: now 8" in said
    again = json.loads(place.brainq("submit", "monday", "count apples", "--json").stdout)
    assert "said: 8" in again["text"]
    listed = json.loads(place.brainq("list", "--json").stdout)
    assert len(listed) == 2
    assert place.brainq("show", listed[0]["turn_id"]).returncode == 0
    doctor = {row["name"]: row["level"] for row in json.loads(place.brainq("doctor", "--json").stdout)}
    assert doctor["model"] == doctor["workers"] == "ok"


def takes_up_a_change_and_shows_a_broken_one(place: Place, dev: Dev) -> None:
    app = place.directory / "shop" / "app.py"
    before = app.read_text()
    app.write_text(before.replace("    return found", "    return wrong(\n    return found"))
    wait_until(lambda: "the workers keep the old code" in dev.said, "the fault is shown", 60)
    assert "SyntaxError" in dev.said
    assert f"{app}:" in dev.said
    app.write_text(before.replace("LOCAL_WRITE, resources", "LOCAL_WRITE, approval=True, resources"))
    wait_until(lambda: "app.py changed; restarting the workers" in dev.said, "the change is taken up", 60)
    wait_until(lambda: "workers are running the new code" in dev.said, "all are ready", 90)

    turn = place.brainq("submit", "tuesday", "restock pears by 2", "--no-wait").stdout.strip()

    def asked() -> str:
        rows = json.loads(place.brainq("approvals", "--json").stdout or "[]")
        return next((str(row["id"]) for row in rows), "")

    approved = place.brainq("approve", wait_until(asked, "the call waits for a person", 60))
    assert approved.returncode == 0, approved.stderr
    result = place.brainq("tail", turn)
    assert "pears: now 14" in result.stdout, result.stdout + result.stderr


def ends_with_ctrl_c(place: Place, dev: Dev) -> None:
    shop = place.directory / "shop"
    pids = [int(path.read_text()) for path in (shop / ".brainq" / "logs").glob("*.ready")]
    assert len(pids) == 5  # four workers and the gateway
    dev.process.send_signal(signal.SIGINT)
    assert dev.process.wait(60) == 0, dev.said
    assert "Traceback" not in dev.said.rpartition("restarting the workers")[2]
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert running_url(shop / ".brainq" / "redis") is None


@pytest.mark.full
def test_a_new_project_runs_without_a_key_follows_its_code_and_ends(place: Place, dev: Dev) -> None:
    runs_its_tools_and_says_what_a_real_model_takes(place, dev)
    takes_up_a_change_and_shows_a_broken_one(place, dev)
    ends_with_ctrl_c(place, dev)


@pytest.mark.full
def test_a_key_that_is_missing_is_one_sentence(place: Place) -> None:
    brainq = str(place.bin / "brainq")
    assert place.run([brainq, "init", "corner"], place.directory).returncode == 0
    refused = place.run([brainq, "dev"], place.directory / "corner", CORNER_MODEL="openai:gpt-4.1-mini")
    assert refused.returncode == ExitCode.SETUP
    assert refused.stdout == ""
    assert refused.stderr.count("\n") == 1
    assert "set OPENAI_API_KEY" in refused.stderr
