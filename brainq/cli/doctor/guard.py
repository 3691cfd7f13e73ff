"""One check that breaks is one line, and the others go on."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator

from brainq.cli.main import describe_error
from brainq.errors import BrainqError
from brainq.wiring.preflight import Check, fail


def guarded(name: str, make: Callable[[], Generator[Check, None, bool]]) -> Generator[Check, None, bool]:
    """Pass checks on; what they return, or False if they raise, which becomes a FAIL of this name."""
    try:
        return (yield from make())
    except Exception as error:
        yield _broken(name, error)
        return False


def each_guarded(name: str, make: Callable[[], Iterable[Check]]) -> Iterator[Check]:
    """Yield checks that nothing depends on. If making them fails, yield one that says so."""
    try:
        yield from make()
    except Exception as error:
        yield _broken(name, error)


def _broken(name: str, error: Exception) -> Check:
    text = str(error) if isinstance(error, BrainqError) else describe_error(error)[0]
    said, _, remedy = text.partition("; ")
    return fail(name, said, remedy or "correct what is named, and run `brainq doctor` again")
