"""Regular expressions of schemas, matched in bounded time whoever wrote them.

They are what JSON schema says they are, ECMA 262's. An engine that reads a text once takes nearly all of them; its time
grows with the text and with the size of what the expression compiles to, so a large one is held to short texts alone.
What looks around or back is not for that engine. Where it looks ahead at the very beginning, as `^(?!\\s*$)` does, each
look is an expression of its own; anything else goes to one that goes back, and gives up after so many steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from brainq.text.surrogates import clean

MAX_PATTERN_CHARS = 10_000
_SIZES = ((5_000, 1_000_000), (30_000, 100_000), (300_000, 10_000), (1_250_000, 2_500))
"""Bytes that an expression compiles to, and the longest text it is held to: a second or two at the worst of each."""
_LOOKING_BYTES = 300_000
_LOOKING_CHARS = 1_000
_LOOKING_STEPS = 10_000
_CACHE_BYTES = 1_000_000  # of an engine's own
_QUANTIFIERS = ("*", "+", "?", "{")


class UnusablePattern(ValueError):
    """No engine here takes it; the words say why."""


class TooLongForPattern(ValueError):
    """A text is not held to this pattern: it would take too long."""


@dataclass(frozen=True, slots=True)
class _Part:
    """finds   whether the text has what it looks for. Raises TooLongForPattern."""

    finds: Callable[[str], bool]
    is_wanted: bool
    most_chars: int


def is_found(pattern: str, text: str) -> bool:
    """Whether `text` matches `pattern` anywhere. Raises UnusablePattern and TooLongForPattern."""
    parts = _compiled(pattern)
    text = clean(text)
    most = min(part.most_chars for part in parts)
    if len(text) > most:
        raise TooLongForPattern(
            f"a text of {len(text):,} characters is not held to the pattern {shown(pattern)}; at most {most:,} are"
        )
    return all(part.finds(text) is part.is_wanted for part in parts)


def check_pattern(pattern: str) -> None:
    """Raises UnusablePattern."""
    _compiled(pattern)


def shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 80 else pattern[:77] + "...")


@lru_cache(maxsize=64)  # a large one holds megabytes
def _compiled(pattern: str) -> tuple[_Part, ...]:
    if len(pattern) > MAX_PATTERN_CHARS:
        raise UnusablePattern(
            f"the pattern {shown(pattern)} has {len(pattern):,} characters; write it with at most {MAX_PATTERN_CHARS:,}"
        )
    if clean(pattern) != pattern:
        raise UnusablePattern("a pattern holds half of a surrogate pair; write whole characters")
    if (whole := _read_once(pattern)) is not None:
        return (whole,)
    parts = [_read_once(part, is_wanted) for part, is_wanted in looks_ahead(pattern)]
    if parts and None not in parts:
        return tuple(part for part in parts if part is not None)
    return (_looking(pattern),)


def looks_ahead(pattern: str) -> list[tuple[str, bool]]:
    """`^(?=A)(?!B)C` as `^(?:A)`, which has to be found, `^(?:B)`, which must not, and `^C`.

    Empty where the pattern has no such beginning, or may mean something else than these.
    """
    rest = pattern.removeprefix("^")
    if (
        rest == pattern or "[]" in pattern or "[^]" in pattern
    ):  # where such a class ends depends on who reads it
        return []
    parts: list[tuple[str, bool]] = []
    while rest.startswith(("(?=", "(?!")):
        end = _closing(rest)
        if end < 0 or rest[end + 1 :].startswith(_QUANTIFIERS):
            return []
        parts.append((f"^(?:{rest[3:end]})", rest[2] == "="))
        rest = rest[end + 1 :]
    if not parts or _has_choice(rest):
        return []
    return [*parts, (f"^{rest}", True)]


def _closing(text: str) -> int:
    """Where the group that `text` begins with ends; -1 where it does not."""
    depth = 0
    for at, sign in _signs(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return at
    return -1


def _has_choice(text: str) -> bool:
    """Whether it has a | that is in no group, or a bracket too many."""
    depth = 0
    for _, sign in _signs(text):
        depth += (sign == "(") - (sign == ")")
        if depth < 0 or (sign == "|" and depth == 0):
            return True
    return False


def _signs(text: str) -> list[tuple[int, str]]:
    """The characters that are neither escaped nor in a class, and where they stand."""
    found: list[tuple[int, str]] = []
    is_class = is_escaped = False
    for at, sign in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif sign == "\\":
            is_escaped = True
        elif is_class:
            is_class = sign != "]"
        elif sign == "[":
            is_class = True
        else:
            found.append((at, sign))
    return found


def _read_once(pattern: str, is_wanted: bool = True) -> _Part | None:
    """By the engine that reads a text once; None where the pattern is none for it."""
    from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

    for most_bytes, most_chars in _SIZES:
        options = RegexOptions(size_limit=most_bytes, dfa_size_limit=_CACHE_BYTES)
        try:
            validator = Draft202012Validator({"pattern": pattern}, pattern_options=options)
        except ValidationError:
            continue
        return _Part(validator.is_valid, is_wanted, most_chars)
    return None


def _looking(pattern: str) -> _Part:
    """By the engine that goes back."""
    from jsonschema_rs import Draft202012Validator, FancyRegexOptions, ValidationError, ValidationErrorKind

    options = FancyRegexOptions(
        backtrack_limit=_LOOKING_STEPS, size_limit=_LOOKING_BYTES, dfa_size_limit=_CACHE_BYTES
    )
    try:
        validator: Any = Draft202012Validator({"pattern": pattern}, pattern_options=options)
    except ValidationError:
        raise UnusablePattern(
            f"the pattern {shown(pattern)} is none of ECMA 262, which JSON schema's patterns are, or too large; write "
            "it in that form ($ for \\Z, \\1 for (?P=name)), and bound a text by minLength and maxLength"
        ) from None

    def finds(text: str) -> bool:
        for error in validator.iter_errors(text):
            if not isinstance(error.kind, ValidationErrorKind.Pattern):
                raise TooLongForPattern(
                    f"a text of {len(text):,} characters is not held to the pattern {shown(pattern)}: that would take "
                    "too long"
                )
            return False
        return True

    return _Part(finds, is_wanted=True, most_chars=_LOOKING_CHARS)
