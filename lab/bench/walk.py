"""Count the functions and files that a request passes: `python -m lab.bench.walk [--list] [WALK ...]`.

    submit     `Client.submit`, until the turn is queued
    doorbell   a queued turn's doorbell, until the model is called
    read       the model's reply with one read-only call, until the call's result is settled
    write      the same for a local write
    edit       `Client.edit` of an approval, until the call's doorbell is rung

Only brainq's own functions count, each once. A turn is driven in this process as `pump` does. Each walk is made twice,
and the second counts: by then connections, caches and threads exist. `lab/house.toml` caps the figures.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, cast

import brainq
from brainq import Brain, Client, Effect, ScriptedProvider
from brainq.adapters.celery import names
from brainq.app.wiring import Wiring
from brainq.client.connection import wiring_of
from brainq.contracts.model import ModelChunk, ModelRequest
from brainq.engine.models.providers import keeps_limits
from brainq.engine.models.scripted import calls, says
from brainq.runtime.settings.deployment import load_settings
from lab.bench.pump import no_cut, take
from lab.bench.stage import forget_settings, open_client

HOME = str(Path(brainq.__file__).parent)


@dataclass
class Recorder:
    """The functions called while `is_on`, in the order in which they were met."""

    is_on: bool = False
    met: dict[CodeType, None] = field(default_factory=dict[CodeType, None])

    def watch(self, frame: FrameType, event: str, _: Any) -> None:
        """Record a call; installed as the profile function of all threads."""
        if self.is_on and event == "call" and frame.f_code.co_filename.startswith(HOME):
            self.met.setdefault(frame.f_code)

    @property
    def functions(self) -> list[str]:
        """`file: function`, without comprehensions and module bodies."""
        return [
            f"{code.co_filename[len(HOME) + 1 :]}: {code.co_qualname}"
            for code in self.met
            if not code.co_name.startswith("<") or code.co_name == "<lambda>"
        ]

    @contextmanager
    def recording(self) -> Generator[None]:
        self.is_on = True
        try:
            yield
        finally:
            self.is_on = False


class Provider(ScriptedProvider):
    """A provider that replies with one call of a tool, then with text.

    It runs `asked` when it is called, and `replied` before it returns its first reply.
    """

    def __init__(self, tool: str, asked: Callable[[], None], replied: Callable[[], None]) -> None:
        super().__init__([calls((tool, {"path": "a"})), says("done")])
        self._asked, self._replied = asked, replied

    @keeps_limits  # like the method that it overrides: it is read in the caller's thread
    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        self._asked()
        yield from super().generate_stream(request)
        if not any(message.role == "tool" for message in request.messages):
            self._replied()


def _nothing() -> None:
    """Do nothing. Used if a walk neither starts nor ends at the model."""


def brain_of(provider: Provider) -> Brain:
    """Return a brain with a tool for each walk."""
    brain = Brain("walk", provider, "Do what is asked.")

    @brain.tool(effect=Effect.READ_ONLY)
    def read(path: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Read a note."""
        return path

    @brain.tool(effect=Effect.LOCAL_WRITE)
    def write(path: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Write a note."""
        return path

    @brain.tool(effect=Effect.LOCAL_WRITE, approval=True)
    def reviewed(path: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Write a note once somebody has approved it."""
        return path

    return brain


@dataclass
class Stage:
    """A client and the machines of all pools, in this process."""

    client: Client
    wiring: Wiring
    recorder: Recorder
    session: str

    def answer_doorbells(self, around: Mapping[str, Callable[[], Any]]) -> None:
        """Answer doorbells until none is left. A task named in `around` runs inside the context that is made there."""
        answers: dict[str, Callable[..., object]] = {
            names.TURN_ADVANCE: self.wiring.coordinator.advance,
            names.CALL_RUN: partial(self.wiring.runner.run, abandon=no_cut),
            names.FINALIZE_STEP: self.wiring.finalizer.run,
        }
        while (bell := take(self.wiring, names.ALL_QUEUES)) is not None:
            task, args = bell
            if task in around:
                with around[task]():
                    answers[task](*args)
            else:
                answers[task](*args)
            self.recorder.is_on = False

    def submitted(self) -> None:
        with self.recorder.recording():
            self.client.submit(self.session, "go")
        self.answer_doorbells({})

    def rung(self) -> None:
        """End the recording when the provider is called."""
        self.client.submit(self.session, "go")
        self.answer_doorbells({names.TURN_ADVANCE: self.recorder.recording})

    def called(self) -> None:
        """Start the recording in the coordinator when the provider is called.

        The settled result ends it in the worker.
        """
        settle = self.wiring.state.calls.settle

        def settled(*args: Any, **given: Any) -> Any:
            try:
                return settle(*args, **given)
            finally:
                self.recorder.is_on = False

        self.wiring.state.calls.settle = settled
        try:
            self.client.submit(self.session, "go")
            self.answer_doorbells({names.CALL_RUN: self.recorder.recording})
        finally:
            self.wiring.state.calls.settle = settle

    def edited(self) -> None:
        self.client.submit(self.session, "go")
        self.answer_doorbells({})
        (approval,) = self.client.approvals()
        with self.recorder.recording():
            self.client.edit(approval.id, {"path": "b"})
        self.answer_doorbells({})


def walk_of(kind: str, directory: Path) -> list[str]:
    """Return the functions of a walk, as `file: function`."""
    recorder = Recorder()
    stop, start = partial(setattr, recorder, "is_on", False), partial(setattr, recorder, "is_on", True)
    provider, walk = {
        "submit": (Provider("read", _nothing, _nothing), Stage.submitted),
        "doorbell": (Provider("read", stop, _nothing), Stage.rung),
        "read": (Provider("read", _nothing, start), Stage.called),
        "write": (Provider("write", _nothing, start), Stage.called),
        "edit": (Provider("reviewed", _nothing, _nothing), Stage.edited),
    }[kind]
    with open_client(directory) as (client, _):
        settings = load_settings(**wiring_of(client).settings.model_dump(exclude_unset=True))
        wiring = Wiring(settings, brain_of(provider))
        wiring_of(client).brains = wiring.brains
        threading.setprofile(recorder.watch)
        sys.setprofile(recorder.watch)
        try:
            for session in ("first", "second"):
                recorder.met.clear()
                walk(Stage(client, wiring, recorder, session))
            return recorder.functions
        finally:
            sys.setprofile(None)
            threading.setprofile(cast(Any, None))
            wiring.close()


WALKS = ("submit", "doorbell", "read", "write", "edit")


def figures(functions: Sequence[str]) -> tuple[int, int]:
    """Return how many functions and files a walk has."""
    return len(set(functions)), len({function.partition(":")[0] for function in functions})


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m lab.bench.walk", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("walk", nargs="*", choices=[*WALKS, []], help="all of them if none is named")
    parser.add_argument("--list", action="store_true", help="name the functions in the order in which they are met")
    given = parser.parse_args(arguments)
    forget_settings()
    for kind in given.walk or WALKS:
        with tempfile.TemporaryDirectory(prefix="walk-") as directory:
            functions = walk_of(kind, Path(directory))
        print("{:9} {:4} functions in {} files".format(kind, *figures(functions)))
        if given.list:
            print("\n".join(f"    {function}" for function in functions))
    return 0


if __name__ == "__main__":
    sys.exit(main())
