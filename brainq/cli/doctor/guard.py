"""Report a check that raises as one failed line, and continue with the other checks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator

from brainq.app.wiring.preflight import Check, fail
from brainq.cli.main import describe_error
from brainq.errors import BrainqError


def guarded(name: str, make: Callable[[], Generator[Check, None, bool]]) -> Generator[Check, None, bool]:
    """Yield checks and return their result. If they raise, yield a FAIL with this name and return False."""
    try:
        return (yield from make())
    except Exception as error:
        yield _broken(name, error)
        return False


def each_guarded(name: str, make: Callable[[], Iterable[Check]]) -> Iterator[Check]:
    """Yield checks on which no other check depends. If they raise, yield a FAIL with this name."""
    try:
        yield from make()
    except Exception as error:
        yield _broken(name, error)


def _broken(name: str, error: Exception) -> Check:
    text = str(error) if isinstance(error, BrainqError) else describe_error(error)[0]
    problem, _, remedy = text.partition("; ")
    return fail(name, problem, remedy or "fix this error, then run `brainq doctor` again")
