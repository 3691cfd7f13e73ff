"""What the demo runs on: a Redis of its own, SQLite, four worker processes and a web page, in a temporary folder."""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from brainq.app.devserver.local_fleet import LocalFleet
from brainq.app.devserver.redis_server import EmbeddedServer
from examples.vault.vault import SHIPPED_NOTES

ROOT = Path(__file__).resolve().parents[2]
PAGES = Path(__file__).parent / "pages"
APP = "examples.vault.app:brain"
PAGE = "why-retries-need-a-key.html"


class Inbox:
    """Where notes are sent to. It keeps each that arrives, and answers none before `answers` is set: whoever sends
    one is in the middle of a write until then."""

    def __init__(self) -> None:
        self.url = ""
        self.received: SimpleQueue[str] = SimpleQueue()
        self.answers = threading.Event()


@dataclass(frozen=True, slots=True)
class Stage:
    """`notes` is the copy the tools work on; `page_url` and the inbox's `url` answer while the stage stands."""

    folder: Path
    notes: Path
    page_url: str
    fleet: LocalFleet
    inbox: Inbox


class _QuietHandler(SimpleHTTPRequestHandler):
    def __init__(self, *given: Any, inbox: Inbox, directory: str) -> None:
        self._inbox = inbox  # before the request is answered, which the next line does
        super().__init__(*given, directory=directory)

    def do_POST(self) -> None:
        self._inbox.received.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self._inbox.answers.wait()
        self.send_response(204)
        self.end_headers()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        return None


@contextmanager
def temporary_folder(*, keep: bool) -> Generator[Path]:
    """A folder that is gone afterwards, unless it is to be kept."""
    folder = Path(tempfile.mkdtemp(prefix="brainq-demo-"))
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def set_up(folder: Path) -> Generator[Stage]:
    """Start everything but the workers, point the environment at it, and take it all down at the end."""
    notes = folder / "notes"
    shutil.copytree(SHIPPED_NOTES, notes)
    with ExitStack() as stack:
        redis_url = stack.enter_context(EmbeddedServer(folder / "redis")).url
        inbox = Inbox()
        server_url = stack.enter_context(_web_server(inbox))
        inbox.url = f"{server_url}/inbox"
        page_url = f"{server_url}/{PAGE}"
        _point_environment(folder, notes, redis_url)
        fleet = LocalFleet(folder / "workers", {})
        stack.callback(fleet.stop)
        yield Stage(folder, notes, page_url, fleet, inbox)


def _point_environment(folder: Path, notes: Path, redis_url: str) -> None:
    """Settings of a deployment that happen to be exported must not lead the demo to it."""
    for name in [name for name in os.environ if name.startswith("BRAINQ_") and name != "BRAINQ_MODEL"]:
        del os.environ[name]
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    passed = [os.environ.get("NO_PROXY") or os.environ.get("no_proxy") or "", "127.0.0.1"]
    os.environ |= {
        "BRAINQ_APP": APP,
        "BRAINQ_REDIS_URL": redis_url,
        "BRAINQ_SQL_URL": f"sqlite:///{folder / 'brainq.db'}",
        "BRAINQ_DATA_DIR": str(folder),
        "VAULT_DIR": str(notes),
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "NO_PROXY": ",".join(host for host in passed if host),
        "no_proxy": ",".join(host for host in passed if host),
    }


@contextmanager
def _web_server(inbox: Inbox) -> Generator[str]:
    handler = functools.partial(_QuietHandler, inbox=inbox, directory=str(PAGES))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, name="demo-page", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        inbox.answers.set()
        server.shutdown()
        server.server_close()
        thread.join()
