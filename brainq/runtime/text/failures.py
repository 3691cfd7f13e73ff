"""The text of an exception for people and models. A group shows its leaves, and a pydantic failure its fields."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from pydantic import ValidationError

MAX_LEAVES = 5
MAX_FIELDS = 5


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions in a group and in its groups. Any other exception yields itself."""
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if isinstance(one, BaseExceptionGroup):
            group: BaseExceptionGroup[BaseException] = one
            waiting.extend(reversed(group.exceptions))
        else:
            yield one


def only_leaf(error: BaseException) -> BaseException:
    """Return the one exception in a group, or the error itself if it has several."""
    first, *others = leaves(error)
    return error if others else first


def failure_name(error: BaseException) -> str:
    """Return the type's name. A group includes the types of its leaves: `ExceptionGroup(TimeoutError, KeyError)`."""
    if not isinstance(error, BaseExceptionGroup):
        return type(error).__name__
    names = list(dict.fromkeys(type(leaf).__name__ for leaf in leaves(error)))
    return f"{type(error).__name__}({', '.join(names[:MAX_LEAVES])}{', ...' if len(names) > MAX_LEAVES else ''})"


def failure_text(error: BaseException) -> str:
    """Return `TypeName: message` in one line. A group shows each leaf, and its cause."""
    return _text(error, ())


def failure_words(error: BaseException) -> str:
    """Return the text of an exception, without its own type."""
    return failure_text(error) if isinstance(error, BaseExceptionGroup) else failure_message(error)


def failure_message(error: BaseException) -> str:
    """Return the message in one line, or "" if the exception has none, or cannot render it."""
    if _is_of_pydantic(error):
        return _fields(error)
    try:
        return " ".join(str(error).split())
    except BaseException:  # a broken __str__ must not hide the failure
        return ""


def _text(error: BaseException, above: tuple[BaseException, ...]) -> str:
    """Return the text. `above` are the exceptions that this one caused, or holds: a leaf may be raised from its own
    group."""
    if not isinstance(error, BaseExceptionGroup):
        cause = error.__cause__
        shows_cause = cause is not None and cause not in above and (_in_group(above) or _holds_group(cause))
        return f"{_one(error)} (caused by {_text(cause, (*above, error))})" if cause and shows_cause else _one(error)
    found = list(leaves(error))
    shown = [_text(leaf, (*above, error)) if leaf not in above else _one(leaf) for leaf in found[:MAX_LEAVES]]
    more = len(found) - MAX_LEAVES
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")


def _in_group(above: tuple[BaseException, ...]) -> bool:
    return any(isinstance(one, BaseExceptionGroup) for one in above)


def _holds_group(error: BaseException) -> bool:
    one: BaseException | None = error
    for _ in range(MAX_LEAVES):
        if one is None or isinstance(one, BaseExceptionGroup):
            break
        one = one.__cause__
    return isinstance(one, BaseExceptionGroup)


def _one(error: BaseException) -> str:
    message = failure_message(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _is_of_pydantic(error: BaseException) -> TypeGuard[ValidationError]:
    # Importing pydantic takes longer than `brainq --help`. Until it is imported, it cannot have raised this error.
    core = sys.modules.get("pydantic_core")
    return core is not None and isinstance(error, core.ValidationError)


def _fields(error: ValidationError) -> str:
    """Return the problem of each field, without the input."""
    problems = error.errors(include_url=False, include_input=False)
    shown = [f"{_place(problem['loc']) or error.title}: {problem['msg']}" for problem in problems[:MAX_FIELDS]]
    more = len(problems) - MAX_FIELDS
    return "; ".join(" ".join(one.split()) for one in shown) + (f"; and {more} more" if more > 0 else "")


def _place(loc: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).lstrip(".")
