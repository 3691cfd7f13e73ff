"""What is looked at before a worker starts: each fault is one sentence with its remedy, all of them at once."""

from __future__ import annotations

import errno
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brainq.adapters.sql.store import Store
from brainq.app.wiring import preflight
from brainq.app.wiring.preflight import check_disk, check_redis, check_sql, require_start
from brainq.errors import BrainNotLoaded, SetupError
from brainq.runtime.observe import threads
from brainq.runtime.settings.deployment import Settings, load_settings
from tests.support.refused_threads import REFUSED, RefusedThreads

APP = "from brainq import Brain\n\nbrain = Brain('shop', {model!r})\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port where somebody takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def _no_spec(_name: str) -> None:
    return None


def settings_of(here: Path, module: str, text: str, **given: Any) -> Settings:
    (here / f"{module}.py").write_text(text)
    return load_settings(app=f"{module}:brain", data_dir=here / "data", **given)


def test_a_setup_that_is_whole_gives_the_brain(here: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    settings = settings_of(here, "pre_whole", APP.format(model="openai:gpt-4.1-mini"))
    assert require_start(settings, redis_url=redis_url, writes=here).default.name == "shop"
    assert not (here / "data").exists(), "it only looks"


@pytest.mark.parametrize(
    ("model", "remedy"),
    [("openai:gpt-4.1-mini", "set OPENAI_API_KEY"), ("anthropic:claude-haiku-4-5", "set ANTHROPIC_API_KEY")],
)
def test_a_missing_key_is_said_with_its_variable(here: Path, model: str, remedy: str) -> None:
    module = "pre_key_" + model.partition(":")[0]
    settings = settings_of(here, module, APP.format(model=model))
    with pytest.raises(SetupError, match=rf"model: {model}: no API key for .*; {remedy}"):
        require_start(settings, redis_url=None)


def test_a_missing_package_is_said_with_its_extra(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setattr("brainq.adapters.models.vendor_provider.find_spec", _no_spec)
    settings = settings_of(here, "pre_package", APP.format(model="openai:gpt-4.1-mini"))
    with pytest.raises(SetupError, match=r"model: .*'openai'; .*pip install 'brainq\[openai\]'"):
        require_start(settings, redis_url=None)


def test_every_fault_is_said_at_once_each_with_its_variable_and_no_password(here: Path, silent_port: int) -> None:
    settings = settings_of(
        here,
        "pre_faults",
        APP.format(model="openai:gpt-4.1-mini"),
        sql_url="postgresql://me:hush@127.0.0.1:1/shop",
        broker_url="amqp://me:hush@127.0.0.1:1//",
        doorbell="outbox",
    )
    began = time.monotonic()
    with pytest.raises(SetupError) as refused:
        require_start(settings, redis_url=f"redis://:hush@127.0.0.1:{silent_port}/0")
    lines = str(refused.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["model", "sql", "redis", "broker"]
    for line, variable in zip(lines[1:], ("SQL", "REDIS", "BROKER"), strict=True):
        assert line.endswith(f", or correct BRAINQ_{variable}_URL")
    assert "hush" not in str(refused.value)
    assert time.monotonic() - began < 4 * preflight.LIMIT_S, "the Redis that never answers was not waited for"


def test_a_brain_that_fails_to_import_names_its_file_and_line_and_keeps_the_path_there(here: Path) -> None:
    settings = settings_of(
        here, "pre_broken", "from brainq import Brain\n\ndef price():\n    return 1 / 0\n\nprice()\n"
    )
    with pytest.raises(BrainNotLoaded) as refused:
        require_start(settings, redis_url="redis://127.0.0.1:1/0")
    assert "pre_broken.py:4: ZeroDivisionError: division by zero" in str(refused.value)
    assert "redis: " in str(refused.value), "the rest is said, too"
    shown = refused.value.shown_traceback
    assert "price()" in shown
    assert shown.count("File ") == 2
    assert "importlib" not in shown


def test_what_brainq_refuses_in_the_brain_is_shown_up_to_the_line_that_asked_for_it(here: Path) -> None:
    settings = settings_of(here, "pre_refused", APP.format(model="opnai:gpt-4.1"))
    with pytest.raises(BrainNotLoaded, match=r"pre_refused\.py:3: InvalidInput: model: 'opnai'") as refused:
        require_start(settings, redis_url=None)
    assert refused.value.shown_traceback.count("File ") == 1
    assert "pre_refused.py" in refused.value.shown_traceback


def test_a_syntax_error_names_its_line(here: Path) -> None:
    settings = settings_of(here, "pre_syntax", "from brainq import Brain\n\nbrain = (\n")
    with pytest.raises(BrainNotLoaded, match=r"pre_syntax\.py:3: SyntaxError"):
        require_start(settings, redis_url=None)


def test_a_module_of_the_brain_that_is_missing_is_not_taken_for_the_brain_itself(here: Path) -> None:
    settings = settings_of(here, "pre_import", "import no_such_thing_at_all\n")
    with pytest.raises(BrainNotLoaded, match=r"pre_import\.py:1: ModuleNotFoundError"):
        require_start(settings, redis_url=None)


def test_sql_that_is_no_database_or_of_another_brainq_is_refused(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.db"
    garbage.write_bytes(b"not a database at all, " * 100)
    assert check_sql(f"sqlite:///{garbage}").level == "FAIL"
    for revision, remedy in (("9999", "install the newer brainq"), ("0012", "set BRAINQ_SQL_URL to a new database")):
        url = f"sqlite:///{tmp_path}/{revision}.db"
        with Store.open(url) as store, store.engine.begin() as connection:
            connection.exec_driver_sql(f"UPDATE brainq_schema SET version_num = '{revision}'")
        found = check_sql(url)
        assert found.level == "FAIL"
        assert found.remedy.startswith(remedy)
        for migrate in (True, False):
            with pytest.raises(SetupError, match=f"revision {revision}, .*; {found.remedy}"):
                Store.open(url, migrate=migrate)
    assert check_sql(f"sqlite:///{tmp_path}/made/later.db").level == "ok"
    assert not (tmp_path / "made").exists()


def test_a_place_that_takes_no_files_is_told_from_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_disk(tmp_path / "not" / "there" / "yet").level == "ok"
    (tmp_path / "file").touch()
    assert (
        check_disk(tmp_path / "file" / "below").remedy
        == "set BRAINQ_DATA_DIR to a directory that this user can write to"
    )

    def full(*_given: object, **_named: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    found = check_disk(tmp_path)
    assert (found.level, found.remedy) == ("FAIL", "free space on that disk")
    assert "is on a disk that is full" in found.said


def test_one_fault_that_two_looks_meet_is_said_once(here: Path) -> None:
    (here / "data").touch()
    settings = settings_of(here, "pre_once", APP.format(model="offline:rules"))
    with pytest.raises(SetupError) as refused:
        require_start(settings, redis_url=None, writes=settings.data_dir)
    assert str(refused.value).count("set BRAINQ_DATA_DIR") == 1


def test_a_redis_that_is_there_is_named_and_one_that_refuses_the_login_says_so(redis_url: str) -> None:
    assert check_redis(redis_url).level == "ok"
    refused = check_redis(redis_url.replace("redis://", "redis://nobody:wrong@"))
    assert refused.level == "FAIL"
    assert "refuses the login" in refused.said
    assert "wrong" not in refused.said


def test_a_look_that_hangs_is_left_to_itself(here: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    never = threading.Event()

    def hang(_url: str) -> None:
        never.wait(30)

    monkeypatch.setattr(preflight, "LIMIT_S", 0.2)
    monkeypatch.setattr(preflight, "check_sql", hang)
    try:
        with pytest.raises(SetupError, match=r"^sql: no answer within 0\.2 s; .*BRAINQ_SQL_URL$"):
            require_start(settings_of(here, "pre_hang", APP.format(model="offline:rules")), redis_url=None)
    finally:
        never.set()


def test_a_check_that_gets_no_thread_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "REFUSED_PAUSES_S", ())
    RefusedThreads(monkeypatch, "brainq-look-redis", 1)
    first, second = preflight._ParallelChecks(  # pyright: ignore[reportPrivateUsage]
        {"redis": lambda: preflight.ok("redis", "answers"), "sql": lambda: preflight.ok("sql", "answers")}, 5.0
    ).results()
    assert (first.level, second.level) == ("FAIL", "ok")
    assert REFUSED in first.said
