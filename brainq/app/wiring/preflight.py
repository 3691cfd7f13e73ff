"""Checks before a worker starts: brains, models, Redis, the broker, SQL and the disk. They take seconds and give a
remedy each."""

from __future__ import annotations

import errno
import re
import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from brainq.adapters.redis.connection import make_client, redis_refusal, server_name
from brainq.adapters.redis.connection import try_write as try_redis_write
from brainq.adapters.redis.keys import Keys
from brainq.adapters.sql.engine import make_engine, require_fts5
from brainq.adapters.sql.migrations.upgrade import revision, why_not_upgradable
from brainq.adapters.sql.refusals import READ_ONLY, driver_message, sql_refusal, try_write
from brainq.adapters.sql.replication import read_hosts
from brainq.adapters.sql.sql_url import parse_sql_url
from brainq.engine.brain.brains import Brains, load_brains
from brainq.engine.models.providers import Provider, check_provider, describe_provider, resolve_model
from brainq.errors import BrainNotLoaded, BrainqError, SetupError
from brainq.runtime.observe.threads import StartedThread, start_thread
from brainq.runtime.settings.cluster_url import CLUSTER_SCHEMES, as_cluster_url, key_prefix
from brainq.runtime.settings.deployment import Settings
from brainq.runtime.settings.service_urls import AMQP_PORTS, REDIS_SCHEMES, check_amqp_url
from brainq.runtime.text.service_url import without_password

Level = Literal["ok", "warn", "FAIL"]
LIMIT_S = 2.5
OTHER_HOST_S = 4.0  # a host that is away costs two timeouts of a connect
CONNECT_S = 2.0
PROBE_BYTES = 1_000_000
MIN_REDIS_VERSION = (7, 0)
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT}
_SETTING_OF_SERVICE = {
    "sql": "BRAINQ_SQL_URL",
    "redis": "BRAINQ_REDIS_URL",
    "broker": "BRAINQ_BROKER_URL",
    "disk": "BRAINQ_DATA_DIR",
}


@dataclass(frozen=True)
class Check:
    """The result of one check. `remedy` says what to do, and is empty for `ok`."""

    name: str
    level: Level
    said: str
    remedy: str = ""

    def as_json(self) -> dict[str, str]:
        return asdict(self)


def ok(name: str, text: str) -> Check:
    return Check(name, "ok", text)


def warn(name: str, text: str, remedy: str) -> Check:
    return Check(name, "warn", text, remedy)


def fail(name: str, text: str, remedy: str) -> Check:
    return Check(name, "FAIL", text, remedy)


def check_disk(directory: Path) -> Check:
    """Check that a megabyte can be written there. Leaves nothing behind, and does not create the directory."""
    there = directory.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        with tempfile.TemporaryFile(dir=there) as probe:
            probe.write(b"\0" * PROBE_BYTES)
            probe.flush()
    except OSError as error:
        return fail("disk", f"{directory.absolute()} {disk_problem(error)}", disk_remedy(error))
    return ok("disk", f"{directory.absolute()} can be written")


def disk_problem(error: OSError) -> str:
    """Return what an error of the file system means, to be shown after a path."""
    if error.errno in _DISK_FULL:
        return f"is on a disk that is full ({error.strerror})"
    return f"cannot be written ({error.strerror})"


def disk_remedy(error: OSError) -> str:
    return (
        "free space on that disk"
        if error.errno in _DISK_FULL
        else "set BRAINQ_DATA_DIR to a directory that this user can write to"
    )


def check_model(model: str | Provider) -> Check:
    if not isinstance(model, str):
        provider, shown = model, describe_provider(model)
    else:
        try:
            provider, name = resolve_model(model)
        except BrainqError as error:
            return fail("model", str(error), "correct the model of your Brain(...)")
        shown = f"{provider.name}:{name}"
    try:
        check_provider(provider)
    except BrainqError as error:
        what, _, remedy = str(error).partition("; ")
        return fail("model", f"{shown}: {what}", remedy)
    return ok("model", shown)


def check_redis(url: str, prefix: str = "bq:", *, name: str = "redis", variable: str = "BRAINQ_REDIS_URL") -> Check:
    """Check that the Redis at `url` answers, is new enough, and accepts writes."""
    shown = without_password(url)
    start = f"start Redis, or correct {variable}"
    try:
        client = make_client(url)
    except SetupError as error:
        return fail(name, f"{shown} is not the address of a Redis: {error}", f"correct {variable}")
    try:
        found = _check_server(name, shown, client.server_info(), variable)
        if found.level == "ok":
            try_redis_write(client, Keys(prefix).epoch)
    except Exception as error:
        if (refusal := redis_refusal(error)) is not None:
            return fail(name, f"{shown} {refusal.reason} ({error})", refusal.remedy.replace("its URL", variable))
        return fail(name, f"{shown} does not answer ({type(error).__name__}: {error})", start)
    finally:
        client.close()
    return found


def _check_server(name: str, shown: str, info: Mapping[str, str], variable: str) -> Check:
    """Return whether brainq works on a server with this INFO. What is not reported counts as suitable. Pure."""
    server, spoken = server_name(info), info.get("redis_version")
    if spoken and tuple(int(part) for part in re.findall(r"\d+", spoken)[:2]) < MIN_REDIS_VERSION:
        return fail(name, f"{server} at {shown} is too old", "brainq needs Redis 7.0 or newer, or Valkey")
    if info.get("cluster_enabled") == "1" and not shown.startswith(CLUSTER_SCHEMES):
        return fail(name, f"{shown} is a node of a Redis Cluster", f"set {variable}={as_cluster_url(shown)}")
    if info.get("role") == "slave":
        return fail(
            name, f"{shown} is a replica and accepts no writes", f"set {variable} to the address of its primary"
        )
    return ok(name, f"{server} at {shown}")


def check_broker(settings: Settings) -> Check:
    """Check that BRAINQ_BROKER_URL, if it is set, leads to a broker."""
    url = settings.broker_url.get_secret_value() if settings.broker_url else ""
    scheme = url.partition("://")[0]
    if url.startswith(REDIS_SCHEMES):
        return check_redis(url, key_prefix(url, settings.prefix), name="broker", variable="BRAINQ_BROKER_URL")
    if scheme not in AMQP_PORTS:
        return ok("broker", without_password(url) or "the same Redis")
    try:
        with socket.create_connection(check_amqp_url(url), CONNECT_S):
            return ok("broker", f"{without_password(url)} accepts connections")
    except SetupError as error:
        return fail("broker", str(error), "correct BRAINQ_BROKER_URL")
    except OSError as error:
        return fail(
            "broker",
            f"{without_password(url)} does not answer ({error})",
            "start the broker, or correct BRAINQ_BROKER_URL",
        )


def check_sql(url: str) -> Check:
    """Check SQL without creating a database file or a schema. An old schema is accepted, because workers upgrade it."""
    shown = without_password(url)
    try:
        path = parse_sql_url(url).sqlite_path
        if path and not Path(path).exists():
            require_fts5()
            room = check_disk(Path(path).parent)
            made = ok("sql", f"{shown} does not exist yet and will be created")
            return made if room.level == "ok" else fail("sql", room.said, room.remedy)
        engine = make_engine(url)
    except BrainqError as error:
        return fail("sql", str(error), "correct BRAINQ_SQL_URL")
    try:
        found = revision(engine)
        if found is not None:
            try_write(engine)
    except SetupError as error:
        what, _, remedy = str(error).partition("; ")
        return fail("sql", what, remedy)
    except Exception as error:
        refusal = sql_refusal(error)
        if refusal is READ_ONLY and engine.dialect.name != "sqlite":
            return _not_primary(shown, url)
        if refusal is not None:
            return fail("sql", f"{shown} {refusal.reason} ({driver_message(error)})", refusal.remedy)
        return fail(
            "sql", f"{shown} does not answer ({driver_message(error)})", "start the database, or correct BRAINQ_SQL_URL"
        )
    finally:
        engine.dispose()
    problem = why_not_upgradable(found)
    if problem is not None:
        what, remedy = problem
        return fail("sql", f"the schema at {shown} {what}", remedy)
    return ok("sql", f"{engine.dialect.name} at {shown}")


def _not_primary(shown: str, url: str) -> Check:
    return fail(
        "sql",
        f"{shown} is read-only, so it accepts no writes: {'; '.join(host.summary for host in read_hosts(url))}",
        "name the primary, or all hosts (postgresql://user@a:5432,b:5432/db), in BRAINQ_SQL_URL; or promote a standby",
    )


def require_start(settings: Settings, *, redis_url: str | None, writes: Path | None = None) -> Brains:
    """Check everything that a worker needs, and return the brains.

    redis_url   None if brainq will start a server of its own
    writes      a directory that files will be written to

    Raises SetupError with a line for each fault and its remedy, after at most 2.5 s (4 s more for each further host of
    the SQL URL) and the import of the brains.
    Raises BrainNotLoaded if the brains are among the faults.
    """
    services = _ParallelChecks(_service_checks(settings, redis_url, writes), _limit_s(settings.sql_address))
    failed: SetupError | None = None
    brains: Brains | None = None
    try:
        brains = load_brains(settings.app)
    except SetupError as error:
        failed = error
    found = services.results()
    if brains is not None:
        models = [model for brain in brains for model in (brain.model, brain.auxiliary_model)]
        found = [*(check_model(model) for model in models if model is not None), *found]
    lines = [*([str(failed)] if failed else []), *_fault_lines(found)]
    if isinstance(failed, BrainNotLoaded):
        raise BrainNotLoaded("\n".join(lines), failed.shown_traceback) from failed
    if lines:
        raise SetupError("\n".join(lines)) from failed
    assert brains is not None
    return brains


def _service_checks(settings: Settings, redis_url: str | None, writes: Path | None) -> dict[str, Callable[[], Check]]:
    looks: dict[str, Callable[[], Check]] = {"sql": lambda: check_sql(settings.sql_address)}
    if redis_url is not None:
        looks["redis"] = lambda: check_redis(redis_url, settings.key_prefix)
    if settings.broker_url is not None:
        looks["broker"] = lambda: check_broker(settings)
    if writes is not None:
        looks["disk"] = lambda: check_disk(writes)
    return looks


def _fault_lines(found: list[Check]) -> list[str]:
    """Return a line for each fault. A fault that two checks have found is shown once."""
    faults: dict[str, str] = {}
    for check in found:
        if check.level == "FAIL":
            faults.setdefault(f"{check.said}; {check.remedy}", check.name)
    return [f"{name}: {fault}" for fault, name in faults.items()]


def _limit_s(sql_url: str) -> float:
    """Return how long the checks may take: longer if hosts of the SQL URL may be away."""
    try:
        return LIMIT_S + OTHER_HOST_S * (len(parse_sql_url(sql_url).hosts) - 1)
    except SetupError:
        return LIMIT_S


def _no_answer(name: str, limit_s: float) -> Check:
    return fail(name, f"no answer within {limit_s:g} s", f"start the service, or correct {_SETTING_OF_SERVICE[name]}")


class _ParallelChecks:
    """Checks that run side by side. A check that hangs in a lookup or a connection is abandoned."""

    def __init__(self, looks: Mapping[str, Callable[[], Check]], limit_s: float) -> None:
        self._limit_s = limit_s
        self._until = time.monotonic() + limit_s
        self._checks: dict[str, Check] = {}
        self._threads = {name: self._begin(name, look) for name, look in looks.items()}

    def _begin(self, name: str, look: Callable[[], Check]) -> StartedThread | None:
        try:
            return start_thread(f"brainq-look-{name}", partial(self._run_check, name, look))
        except RuntimeError as refused:
            self._checks[name] = fail(name, f"not checked: {refused}", "raise this user's limit of threads")
            return None

    def results(self) -> list[Check]:
        for thread in filter(None, self._threads.values()):
            thread.join(max(0.0, self._until - time.monotonic()))
        return [self._checks.get(name) or _no_answer(name, self._limit_s) for name in self._threads]

    def _run_check(self, name: str, look: Callable[[], Check]) -> None:
        try:
            self._checks[name] = look()
        except Exception as error:
            self._checks[name] = fail(
                name, f"{type(error).__name__}: {error}", f"check {_SETTING_OF_SERVICE[name]}, or run `brainq doctor`"
            )
