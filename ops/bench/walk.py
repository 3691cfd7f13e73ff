"""How many functions one tool call passes: `python -m ops.bench.walk [--list]`.

Counted are brainq's own functions, each once: in the coordinator from the moment the model's reply has come to the end
of its advance, and in the worker from the doorbell to the call's settled result. A turn is driven in this process as
`pump` does, with a reply that asks for one call. It is walked twice, and the second time counts: by then connections,
caches and threads are there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, cast

import brainq
from brainq import Brain, Effect, ScriptedProvider
from brainq.broker import names
from brainq.client.connection import wiring_of
from brainq.contracts.model import ModelChunk, ModelRequest
from brainq.models.providers import keeps_limits
from brainq.models.scripted import calls, says
from brainq.settings.deployment import load_settings
from brainq.wiring import Wiring
from ops.bench.pump import no_cut, take
from ops.bench.stage import forget_settings, open_client

HOME = str(Path(brainq.__file__).parent)
KINDS = ("read", "write")


@dataclass
class Walk:
    """The functions called while `is_on`, in the order they were met, with their files."""

    is_on: bool = False
    met: dict[CodeType, None] = field(default_factory=dict[CodeType, None])

    def watch(self, frame: FrameType, event: str, _: Any) -> None:
        """A profile function, for all threads."""
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


class Provider(ScriptedProvider):
    """Starts the walk once the reply that asks for a call has come."""

    def __init__(self, walk: Walk, kind: str) -> None:
        super().__init__([calls((kind, {"path": "a"})), says("done")])
        self._walk = walk

    @keeps_limits  # as the one that it overrides: it is read in the caller's thread
    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        yield from super().generate_stream(request)
        self._walk.is_on = not any(message.role == "tool" for message in request.messages)


def brain_of(walk: Walk, kind: str) -> Brain:
    """A brain whose model asks for one call of `kind`."""
    brain = Brain("walk", Provider(walk, kind), "Do what is asked.")

    @brain.tool(effect=Effect.READ_ONLY)
    def read(path: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Read a note."""
        return path

    @brain.tool(effect=Effect.LOCAL_WRITE)
    def write(path: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Write a note."""
        return path

    return brain


def walk_of(kind: str, directory: Path) -> tuple[list[str], list[str]]:
    """The functions of the coordinator and those of the worker, for one call of `kind`."""
    walk = Walk()
    threading.setprofile(walk.watch)
    sys.setprofile(walk.watch)
    try:
        with open_client(directory) as (client, _):
            settings = load_settings(**wiring_of(client).settings.model_dump(exclude_unset=True))
            wiring = Wiring(settings, brain_of(walk, kind))
            wiring_of(client).brains = wiring.brains
            try:
                client.submit("first", "go")
                _drive(wiring, walk)
                client.submit("second", "go")
                return _drive(wiring, walk)
            finally:
                wiring.close()
    finally:
        sys.setprofile(None)
        threading.setprofile(cast(Any, None))


def _drive(wiring: Wiring, walk: Walk) -> tuple[list[str], list[str]]:
    """Answer doorbells until none is left; the functions of the two parts."""
    walk.met.clear()
    parts: list[list[str]] = []
    settle = wiring.state.calls.settle
    answers: dict[str, Callable[..., object]] = {
        names.TURN_ADVANCE: wiring.coordinator.advance,
        names.CALL_RUN: partial(wiring.runner.run, abandon=no_cut),
        names.FINALIZE_STEP: wiring.finalizer.run,
    }

    def settled(*args: Any, **given: Any) -> Any:
        try:
            return settle(*args, **given)
        finally:
            walk.is_on = False

    wiring.state.calls.settle = settled
    try:
        while (bell := take(wiring, names.ALL_QUEUES)) is not None:
            task, args = bell
            walk.is_on = task == names.CALL_RUN
            answers[task](*args)
            walk.is_on = False
            if walk.met:
                parts.append(walk.functions)
                walk.met.clear()
    finally:
        wiring.state.calls.settle = settle
    coordinator, worker = parts
    return coordinator, worker


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ops.bench.walk", description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the functions")
    given = parser.parse_args(arguments)
    forget_settings()
    for kind in KINDS:
        with tempfile.TemporaryDirectory(prefix="walk-") as directory:
            coordinator, worker = walk_of(kind, Path(directory))
        both = {*coordinator, *worker}
        files = {function.partition(":")[0] for function in both}
        print(
            f"{kind:6} {len(both):4} functions in {len(files)} files"
            f" (coordinator {len(coordinator)}, worker {len(worker)})"
        )
        if given.list:
            for part, functions in (("coordinator", coordinator), ("worker", worker)):
                print(f"  {part}")
                print("\n".join(f"    {function}" for function in functions))
    return 0


if __name__ == "__main__":
    sys.exit(main())
