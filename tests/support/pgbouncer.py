"""A real PgBouncer in transaction mode in front of a test's Postgres. `apt-get install pgbouncer` installs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

from brainq.app.devserver.ports import free_port
from tests.support.wait import wait_until

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


class PgBouncer:
    """A pooler on 127.0.0.1 with `servers` connections for all clients together. `with` starts and ends it.

    socket: the directory of the Postgres' unix socket.
    """

    def __init__(self, socket: Path, servers: int = 4) -> None:
        self.port = free_port()
        self._directory = Path(tempfile.mkdtemp(prefix="bq-pgb-"))
        self._settings = self._directory / "pgbouncer.ini"
        self._settings.write_text(
            f"[databases]\n* = host={socket} user=postgres\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            "auth_type = any\npool_mode = transaction\nmax_client_conn = 1000\n"
            f"default_pool_size = {servers}\nserver_login_retry = 0\nserver_connect_timeout = 5\n"
        )
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start it. Does nothing while it runs."""
        if self._process is not None:
            return
        assert PROGRAM is not None
        for path in (self._directory, self._settings):
            path.chmod(0o755)
        user = "nobody" if os.geteuid() == 0 else None  # it refuses to be root
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen([PROGRAM, self._settings], stdout=log, stderr=log, user=user)
        wait_until(self._answers, "pgbouncer answers", timeout_s=20)

    def kill(self) -> int | None:
        """End it at once, which breaks its clients' connections. Returns its exit code, or None if it does not run."""
        if self._process is None:
            return None
        self._process.kill()
        code, self._process = self._process.wait(), None
        return code

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url("postgres"), prepare_threshold=None).close()
        except psycopg.OperationalError:
            return False
        return True
