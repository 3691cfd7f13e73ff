"""A Postgres primary and a streaming standby as real processes, which can take each other's place again and again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, LiteralString, Self

import psycopg

from brainq.app.devserver.ports import free_port
from tests.support.postgres import User, init_database, postgres_binary, run_program, unprivileged
from tests.support.proxy import Proxy
from tests.support.wait import wait_until

_OPTIONS = (
    *("fsync=off", "full_page_writes=off", "max_connections=300", "autovacuum=off", "unix_socket_directories="),
    *("listen_addresses=127.0.0.1", "hot_standby=on", "wal_retrieve_retry_interval=100ms", "wal_keep_size=256MB"),
    "dynamic_shared_memory_type=mmap",  # files of the server's own, which do not outlive a SIGKILL elsewhere
)


@dataclass(eq=False)
class Node:
    """One of the two servers. Its standby follows it through `wal`, a proxy."""

    name: str
    port: int
    data: Path
    wal: Proxy
    process: subprocess.Popen[bytes] | None = None

    def ask(self, query: LiteralString) -> Any:
        """Return the first value of an answer."""
        with psycopg.connect(host="127.0.0.1", port=self.port, user="postgres", autocommit=True) as connection:
            found = connection.execute(query).fetchone()
        return None if found is None else found[0]

    def tell(self, *statements: LiteralString) -> None:
        """Run statements, such as ALTER SYSTEM, and let the server read its settings again."""
        with psycopg.connect(host="127.0.0.1", port=self.port, user="postgres", autocommit=True) as connection:
            for statement in (*statements, "SELECT pg_reload_conf()"):
                connection.execute(statement)

    def answers(self) -> bool:
        try:
            return self.ask("SELECT 1") == 1
        except psycopg.OperationalError:
            return False


class PostgresPair:
    """Servers `a` and `b`: a primary and its standby. `with` starts and ends them.

    synchronous   whether a commit waits until the standby has it
    """

    def __init__(self, *, synchronous: bool = False) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="bq-pair-"))
        self._synchronous = synchronous
        self._user: User = unprivileged(self.directory)
        ports = {name: free_port() for name in ("a", "b")}
        self.nodes = {
            name: Node(name, port, self.directory / name, Proxy(("127.0.0.1", port))) for name, port in ports.items()
        }
        self.primary, self.standby = self.nodes["a"], self.nodes["b"]

    def url(self, database: str = "postgres") -> str:
        """Return a URL with both hosts, `a` before `b`, in SQLAlchemy's form."""
        hosts = "&".join(f"host=127.0.0.1:{node.port}" for node in self.nodes.values())
        return f"postgresql+psycopg://postgres@/{database}?{hosts}"

    def start(self) -> Self:
        init_database(self.primary.data, self._user, "trust")
        self._run(self.primary)
        self.follow()
        return self

    def follow(self) -> None:
        """Make the standby anew as a copy of the primary, and wait until it follows."""
        shutil.rmtree(self.standby.data, ignore_errors=True)
        source = f"host=127.0.0.1 port={self.primary.port} user=postgres"
        run_program(
            *("pg_basebackup", "-D", self.standby.data, "-d", source, "-R", "-X", "stream", "-c", "fast", "--no-sync"),
            user=self._user,
        )
        self._lead(self.standby)

    def until_followed(self) -> None:
        """Wait until the standby streams, and has all that the primary has now."""
        caught_up: LiteralString = (
            "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND replay_lsn >= pg_current_wal_lsn()"
        )
        wait_until(lambda: self.primary.ask(caught_up) == 1, "the standby follows", timeout_s=60)
        if self._synchronous:
            is_sync: LiteralString = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
            wait_until(lambda: self.primary.ask(is_sync) == 1, "the standby is synchronous", timeout_s=30)

    def fail_over(self) -> int:
        """SIGKILL the primary with all its processes, and promote the standby. Returns how many were killed."""
        killed = self.kill(self.primary)
        self._promote()
        return killed

    def switch(self) -> None:
        """Shut the primary down as planned, promote the standby, and let the old primary follow it."""
        old = self.primary
        self.stop(old)
        self._promote()
        (old.data / "standby.signal").touch()
        self._lead(old)

    def kill(self, node: Node) -> int:
        """SIGKILL a server with all its processes. Returns how many there were."""
        process = node.process
        assert process is not None
        process.send_signal(signal.SIGSTOP)  # it would start others in place of those that are killed
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        return self._end(node, [*map(int, children), process.pid])

    def _end(self, node: Node, pids: Iterable[int]) -> int:
        ended = 0
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                ended += 1
        assert node.process is not None
        node.process.wait()
        node.process = None
        segment = (node.data / "postmaster.pid").read_text().split("\n")[6].split()[-1]
        subprocess.run(["ipcrm", "-m", segment], check=False, capture_output=True)
        (node.data / "postmaster.pid").unlink()
        return ended

    def stop(self, node: Node) -> None:
        """Shut a server down fast. It first sends its standby everything. Does nothing if it does not run."""
        if node.process is not None:
            node.process.send_signal(signal.SIGINT)
            try:
                node.process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.kill(node)
            node.process = None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for node in self.nodes.values():
            if node.process is not None:
                self.kill(node)
            node.wal.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _promote(self) -> None:
        self.primary, self.standby = self.standby, self.primary
        self.primary.tell("ALTER SYSTEM RESET synchronous_standby_names")
        assert self.primary.ask("SELECT pg_promote(true, 60)") is True

    def _lead(self, node: Node) -> None:
        """Start a standby, and wait until it follows."""
        with (node.data / "postgresql.auto.conf").open("a") as settings:
            source = f"host=127.0.0.1 port={self.primary.wal.port} user=postgres application_name={node.name}"
            settings.write(f"primary_conninfo = '{source}'\n")
        self._run(node)
        if self._synchronous:
            self.primary.tell("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.until_followed()

    def _run(self, node: Node) -> None:
        options = [part for option in (*_OPTIONS, f"port={node.port}") for part in ("-c", option)]
        with (self.directory / f"{node.name}.log").open("ab") as log:
            node.process = subprocess.Popen(
                [postgres_binary("postgres"), "-D", node.data, *options], stdout=log, stderr=log, **self._user
            )

        def is_up() -> bool:
            assert node.process is not None
            assert node.process.poll() is None, (self.directory / f"{node.name}.log").read_text()
            return node.answers()

        wait_until(is_up, f"server {node.name} answers", timeout_s=60)
