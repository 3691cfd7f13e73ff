"""Regular expressions of schemas, matched in bounded time whoever wrote them.

They are what JSON schema says they are, ECMA 262's. An engine that reads a text once takes nearly all of them; its time
grows with the text and with the size of what the expression compiles to, so a large one is held to short texts alone.
What looks around or back is not for that engine. Where it looks ahead at the very beginning, as `^(?!\\s*$)` does, each
look is an expression of its own; anything else goes to one that goes back, and gives up after so many steps. A look or
a reference may read all of the text at each step, and holds memory of its own: a pattern has few of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from brainq.gates.pattern_cache import PatternCache
from brainq.text.surrogates import clean

MAX_PATTERN_CHARS = 10_000
MAX_LOOKS = 8
"""Looks ahead and behind, references and groups that do not go back, in one pattern."""
_SIZES = ((5_000, 1_000_000), (30_000, 100_000), (300_000, 10_000), (1_250_000, 2_500))
"""Bytes that a pattern's parts compile to together, and the longest text it is held to: two seconds at worst."""
_LOOKING_BYTES = (5_000, 30_000, 300_000)
_LOOKING_CHARS = 1_000
_LOOKING_STEPS = 10_000
_FREE_LOOKS = 2  # more of them share the steps
_CACHE_BYTES = 1_000_000  # of an engine's own, that it may fill while it matches
_KEPT_BYTES = 64_000_000
_LOOK = re.compile(r"\(\?<?[=!]|\(\?>|\\[1-9k]|[*+?}]\+")
_QUANTIFIERS = ("*", "+", "?", "{")


class UnusablePattern(ValueError):
    """No engine here takes it; the words say why."""


class TooLongForPattern(ValueError):
    """A text is not held to this pattern: it would take too long."""


@dataclass(frozen=True, slots=True)
class _Part:
    """finds    whether the text has what it looks for. Raises TooLongForPattern
    bytes    what it compiled to, at most
    engines  how many engines it has, each with memory of its own
    """

    finds: Callable[[str], bool]
    is_wanted: bool
    most_chars: int
    bytes: int
    engines: int = 1


@dataclass(frozen=True, slots=True)
class _Compiled:
    """most_chars   the longest text that it is held to"""

    parts: tuple[_Part, ...]
    most_chars: int

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    @property
    def held_bytes(self) -> int:
        return self.bytes + _CACHE_BYTES * sum(part.engines for part in self.parts)


def _no_look() -> None:
    """Of who has no time to keep."""


def is_found(pattern: str, text: str, look: Callable[[], None] = _no_look) -> bool:
    """Whether `text` matches `pattern` anywhere. `look` is called before each part of the pattern, and may raise.

    Raises UnusablePattern and TooLongForPattern.
    """
    compiled = _compiled(pattern)
    text = clean(text)
    most = compiled.most_chars
    if len(text) > most:
        raise TooLongForPattern(
            f"a text of {len(text):,} characters is not held to the pattern {shown(pattern)}; at most {most:,} are"
        )
    for part in compiled.parts:
        look()
        if part.finds(text) is not part.is_wanted:
            return False
    return True


def check_pattern(pattern: str) -> int:
    """How many bytes it compiles to, at most. Raises UnusablePattern."""
    return _compiled(pattern).bytes


def shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 80 else pattern[:77] + "...")


KEPT: PatternCache[_Compiled] = PatternCache(_KEPT_BYTES, lambda compiled: compiled.held_bytes)


def _compiled(pattern: str) -> _Compiled:
    """Raises UnusablePattern."""
    return KEPT.get(pattern, _compile)


def _compile(pattern: str) -> _Compiled:
    if len(pattern) > MAX_PATTERN_CHARS:
        raise UnusablePattern(
            f"the pattern {shown(pattern)} has {len(pattern):,} characters; write it with at most {MAX_PATTERN_CHARS:,}"
        )
    if clean(pattern) != pattern:
        raise UnusablePattern("a pattern holds half of a surrogate pair; write whole characters")
    if (whole := _read_once(pattern)) is not None:
        return _Compiled((whole,), whole.most_chars)
    if (looks := len(_LOOK.findall(pattern))) > MAX_LOOKS:
        raise UnusablePattern(
            f"the pattern {shown(pattern)} looks ahead, behind or back {looks:,} times; write it with at most "
            f"{MAX_LOOKS} looks, such as one with choices ((?!a|b) for (?!a)(?!b)), or as several patterns under allOf"
        )
    parts = [_read_once(part, is_wanted) for part, is_wanted in looks_ahead(pattern)]
    if parts and None not in parts:
        return _together(pattern, tuple(part for part in parts if part is not None))
    looking = _looking(pattern, looks)
    return _Compiled((looking,), looking.most_chars)


def _together(pattern: str, parts: tuple[_Part, ...]) -> _Compiled:
    """Parts are held to a text one after the other: what they may cost adds up."""
    size = sum(part.bytes for part in parts)
    for most_bytes, most_chars in _SIZES:
        if size <= most_bytes:
            return _Compiled(parts, most_chars)
    raise UnusablePattern(
        f"the parts of the pattern {shown(pattern)} are too large together; write them with shorter ranges, and "
        "bound a text by minLength and maxLength"
    )


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
        return _Part(validator.is_valid, is_wanted, most_chars, most_bytes)
    return None


def _looking(pattern: str, looks: int) -> _Part:
    """By the engine that goes back. Each look, and what stands between two of them, has an engine that reads once."""
    from jsonschema_rs import Draft202012Validator, FancyRegexOptions, ValidationError, ValidationErrorKind

    engines = 2 * looks + 1
    steps = _LOOKING_STEPS * _FREE_LOOKS // max(_FREE_LOOKS, looks)
    for most_bytes in _LOOKING_BYTES:
        options = FancyRegexOptions(backtrack_limit=steps, size_limit=most_bytes, dfa_size_limit=_CACHE_BYTES)
        with suppress(ValidationError):
            validator: Any = Draft202012Validator({"pattern": pattern}, pattern_options=options)
            break
    else:
        raise UnusablePattern(
            f"the pattern {shown(pattern)} is none of ECMA 262, which JSON schema's patterns are, or too large; write "
            "it in that form ($ for \\Z, \\1 for (?P=name)), and bound a text by minLength and maxLength"
        )

    def finds(text: str) -> bool:
        for error in validator.iter_errors(text):
            if not isinstance(error.kind, ValidationErrorKind.Pattern):
                raise TooLongForPattern(
                    f"a text of {len(text):,} characters is not held to the pattern {shown(pattern)}: that would take "
                    "too long"
                )
            return False
        return True

    return _Part(finds, True, _LOOKING_CHARS, most_bytes * engines, engines)
