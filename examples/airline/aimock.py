"""aimock, a model server in Node with the wires of OpenAI and Anthropic, as a process that holds the recorded replies.

A fixture is matched by the model, which is the session's id, and by how many assistant messages the request holds:
a step that is asked for again gets the same reply, whoever asks.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.request import Request, urlopen

from brainq.errors import SetupError
from examples.airline.model import steps_of
from examples.airline.recorded import RecordedSession, RecordedStep
from examples.airline.wire import Wire, WireName

PROGRAM = Path(sys.prefix) / "aimock" / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
START_TIMEOUT_S = 30.0
FIXTURES_AT_ONCE = 500  # aimock reads no request over 10 MB
CUT_EVERY = 10  # replies, where some are to be cut off
CUT_AFTER_CHUNKS = 3
FAULTS = ("--chaos-ratelimit=0.05", "--chaos-drop=0.05", "--chaos-disconnect=0.03")
"""Of all requests some are answered with 429 and Retry-After, some with 500, and some with a hang-up."""

Fixture = dict[str, Any]
# Whatever becomes of its parent, the process ends with it.
_END_WITH_STDIN = "data:text/javascript,process.stdin.on('end',()=>process.exit()).resume()"
_NOTHING: Fixture = {"match": {"model": "nobody-asks-for-this"}, "response": {"content": "-"}}
_LISTENING = re.compile(r"listening on (http://\S+)")
_COUNT = re.compile(r"^(\w+)\{(.*)\} (\d+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def why_not() -> str | None:
    """Why aimock cannot be started here; None if it can."""
    if shutil.which("node") is None:
        return "aimock needs Node 20.15 or newer, and there is no `node`"
    if not PROGRAM.is_file():
        return "aimock is not installed; install it with: make aimock"
    return None


class Aimock:
    """The process. It listens on a free loopback port; leaving it kills its process group.

    options   of its command line, such as FAULTS
    """

    def __init__(self, fixtures: Sequence[Fixture] = (), options: Iterable[str] = ()) -> None:
        if reason := why_not():
            raise SetupError(reason)
        self._directory = Path(tempfile.mkdtemp(prefix="bq-aimock-"))
        path = self._directory / "fixtures.json"
        # Strict, it refuses to start without a fixture.
        path.write_text(json.dumps({"fixtures": [*fixtures, _NOTHING]}))
        self._log = self._directory / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *("node", f"--import={_END_WITH_STDIN}", str(PROGRAM), "--port=0"),
                    *(f"--fixtures={path}", "--strict", "--metrics", *options),
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, "AIMOCK_STRICT_TURN_INDEX": "1"},
                start_new_session=True,
            )
        try:
            self.url = self._wait_for_url()
        except BaseException:
            self.stop()
            raise

    def wire(self, name: WireName) -> Wire:
        """The wire of that name, as this server speaks it."""
        return wire_at(self.url, name)

    def answered(self) -> Counter[str]:
        """How many model requests were answered, by status; `destroyed` are those that were hung up on."""
        return self._counts("aimock_requests_total", "status", path=re.compile("/v1/(chat/completions|messages)"))

    def faults(self) -> Counter[str]:
        """How many chance faults fired: `rateLimit`, `drop` (a 500), `disconnect`, `malformed`."""
        return self._counts("aimock_chaos_triggered_total", "action")

    def control(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the control API, which is JSON in and out."""
        return _control(self.url, method, path, body)

    def stop(self) -> None:
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _wait_for_url(self) -> str:
        end = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < end:
            said = self._log.read_text(errors="replace")
            if found := _LISTENING.search(said):
                return found[1]
            if self._process.poll() is not None:
                raise SetupError(f"aimock ended instead of starting: {said.strip()[-500:]}")
            time.sleep(0.02)
        raise SetupError(f"aimock did not start within {START_TIMEOUT_S:g} s")

    def _counts(self, name: str, by: str, **where: re.Pattern[str]) -> Counter[str]:
        with urlopen(f"{self.url}/metrics", timeout=30) as response:
            text = response.read().decode()
        counts: Counter[str] = Counter()
        for metric, labels_text, value in _COUNT.findall(text):
            labels = dict(_LABEL.findall(labels_text))
            if metric == name and all(pattern.fullmatch(labels.get(label, "")) for label, pattern in where.items()):
                counts[labels[by]] += int(value)
        return counts


def wire_at(url: str, name: WireName) -> Wire:
    """A wire of the aimock at `url`. The SDKs put their paths after it, of which OpenAI's lacks the `/v1`."""
    return Wire(name, f"{_root(url)}/v1" if name == "openai" else _root(url))


def _root(url: str) -> str:
    return url.rstrip("/").removesuffix("/v1")


def add_fixtures(url: str, fixtures: Sequence[Fixture]) -> None:
    """Give the aimock at `url` more fixtures; those that it has are tried first."""
    for start in range(0, len(fixtures), FIXTURES_AT_ONCE):
        _control(url, "POST", "/fixtures", {"fixtures": fixtures[start : start + FIXTURES_AT_ONCE]})


def _control(url: str, method: str, path: str, body: Any) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = Request(_root(url) + "/__aimock" + path, data, {"content-type": "application/json"}, method=method)
    with urlopen(request, timeout=30) as response:
        return json.load(response)


def fixtures_of(sessions: Iterable[RecordedSession], *, cut_every: int = 0) -> list[Fixture]:
    """The sessions' replies, on either wire.

    cut_every   of so many replies one is cut off in its middle when it is asked for first; 0: none is
    """
    fixtures: list[Fixture] = []
    for number, reply in enumerate(_replies(sessions), 1):
        if cut_every and number % cut_every == 0:
            once = {"match": {**reply["match"], "sequenceIndex": 0}, "truncateAfterChunks": CUT_AFTER_CHUNKS}
            fixtures.append({**reply, **once})
        fixtures.append(reply)
    return fixtures


def _replies(sessions: Iterable[RecordedSession]) -> Iterator[Fixture]:
    for session in sessions:
        steps = (step for turn in session.turns for step in steps_of(turn))
        for said, step in enumerate(steps):
            yield _fixture({"model": session.session_id, "turnIndex": said}, step)


def _fixture(match: Fixture, step: RecordedStep) -> Fixture:
    response: Fixture = {}
    if step.text or not step.calls:
        response["content"] = step.text or " "  # an empty text is refused
    if step.calls:
        response["toolCalls"] = [
            {"id": f"call_{index}", "name": call.tool, "arguments": json.dumps(call.arguments)}
            for index, call in enumerate(step.calls)
        ]
    if step.input_tokens or step.output_tokens:
        response["usage"] = {
            "prompt_tokens": step.input_tokens,
            "completion_tokens": step.output_tokens,
            "total_tokens": step.input_tokens + step.output_tokens,
        }
    fixture: Fixture = {"match": match, "response": response}
    if any(ord(character) > 0xFFFF for character in step.text):
        fixture["chunkSize"] = 1  # aimock cuts between UTF-16 units: every emoji comes in halves
    return fixture
