"""Regular expressions of schemas, matched in bounded time, and the cache of compiled ones. Their syntax is ECMA 262's,
as in JSON schema.

An engine that reads a text once accepts nearly all patterns. Its time grows with the text and with the compiled size of
the pattern, so a large pattern is matched with short texts only. That engine has no lookarounds and no references. Each
lookahead at the very beginning of a pattern, such as `^(?!\\s*$)`, becomes a pattern of its own. All other patterns go
to a backtracking engine, which gives up after a number of steps. A lookaround or a reference may read the whole text at
each step, and has memory of its own, so a pattern may have only a few.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from brainq.runtime.text.surrogates import clean

Value = TypeVar("Value")
MAX_PATTERN_CHARS = 10_000
MAX_LOOKS = 8
"""The most lookarounds, references and atomic groups in one pattern."""
_SIZE_LIMITS = ((5_000, 1_000_000), (30_000, 100_000), (300_000, 10_000), (1_250_000, 2_500))
"""Limits for the compiled size of a pattern's parts, in bytes, each with the longest text that is matched with such a
pattern. A match takes two seconds at worst."""
_BACKTRACK_BYTES = (5_000, 30_000, 300_000)
_BACKTRACK_CHARS = 1_000
_BACKTRACK_STEPS = 10_000
_FREE_LOOKS = 2  # with more lookarounds, the steps are shared
_CACHE_BYTES = 1_000_000  # of an engine's own cache, which it fills while it matches
_KEPT_BYTES = 64_000_000
_LOOK = re.compile(r"\(\?<?[=!]|\(\?>|\\[1-9k]|[*+?}]\+")
_QUANTIFIERS = ("*", "+", "?", "{")


class PatternCache(Generic[Value]):
    """A cache of compiled values, bounded by their size and not by their number. Thread-safe.

    most_bytes   the total size of all cached values; a value larger than this is not cached
    size         returns an upper bound of a value's memory use in bytes
    """

    def __init__(self, most_bytes: int, size: Callable[[Value], int]) -> None:
        self._most_bytes = most_bytes
        self._size = size
        self._kept: OrderedDict[str, Value] = OrderedDict()
        self._lock = threading.Lock()
        self.held_bytes = 0

    def get(self, key: str, make: Callable[[str], Value]) -> Value:
        """Return the value of a key. Raises what `make` raises."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        value = make(key)
        size = self._size(value)
        with self._lock:
            if size <= self._most_bytes and key not in self._kept:
                self._kept[key] = value
                self.held_bytes += size
                while self.held_bytes > self._most_bytes:
                    self.held_bytes -= self._size(self._kept.popitem(last=False)[1])
        return value


class UnusablePattern(ValueError):
    """The error of a pattern that no engine here accepts. Its text says why."""


class TooLongForPattern(ValueError):
    """The error of a text that is too long to be matched with a pattern in bounded time."""


@dataclass(frozen=True, slots=True)
class _PatternPart:
    """One engine of a pattern.

    matches: returns whether the text contains what the part looks for. Raises TooLongForPattern.
    bytes: the largest size of the compiled part.
    engines: the number of engines, each with its own memory.
    """

    matches: Callable[[str], bool]
    is_wanted: bool
    max_chars: int
    bytes: int
    engines: int = 1


@dataclass(frozen=True, slots=True)
class _CompiledPattern:
    """A pattern that is ready to match. `max_chars` is the longest text that is matched with it."""

    parts: tuple[_PatternPart, ...]
    max_chars: int

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    @property
    def held_bytes(self) -> int:
        return self.bytes + _CACHE_BYTES * sum(part.engines for part in self.parts)


def _no_time_check() -> None:
    """Do nothing: there is no time limit to check."""


def matches_anywhere(pattern: str, text: str, check_time: Callable[[], None] = _no_time_check) -> bool:
    """Return whether `text` matches `pattern` anywhere. `check_time` is called before each part of the pattern, and may
    raise.

    Raises UnusablePattern and TooLongForPattern.
    """
    compiled = _compiled(pattern)
    text = clean(text)
    most = compiled.max_chars
    if len(text) > most:
        raise TooLongForPattern(
            f"a text of {len(text):,} characters is too long for the pattern {shown_pattern(pattern)}; at most "
            f"{most:,} are matched"
        )
    for part in compiled.parts:
        check_time()
        if part.matches(text) is not part.is_wanted:
            return False
    return True


def check_pattern(pattern: str) -> int:
    """Return the largest compiled size of the pattern, in bytes. Raises UnusablePattern."""
    return _compiled(pattern).bytes


def shown_pattern(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 80 else pattern[:77] + "...")


COMPILED_PATTERNS: PatternCache[_CompiledPattern] = PatternCache(_KEPT_BYTES, lambda compiled: compiled.held_bytes)


def _compiled(pattern: str) -> _CompiledPattern:
    """Return the compiled pattern. Raises UnusablePattern."""
    return COMPILED_PATTERNS.get(pattern, _compile)


def _compile(pattern: str) -> _CompiledPattern:
    if len(pattern) > MAX_PATTERN_CHARS:
        raise UnusablePattern(
            f"the pattern {shown_pattern(pattern)} has {len(pattern):,} characters; write it with at most "
            f"{MAX_PATTERN_CHARS:,}"
        )
    if clean(pattern) != pattern:
        raise UnusablePattern("a pattern holds half of a surrogate pair; write whole characters")
    if (whole := _linear_part(pattern)) is not None:
        return _CompiledPattern((whole,), whole.max_chars)
    if (looks := len(_LOOK.findall(pattern))) > MAX_LOOKS:
        raise UnusablePattern(
            f"the pattern {shown_pattern(pattern)} looks ahead, behind or back {looks:,} times; write it with at most "
            f"{MAX_LOOKS} looks, such as one with choices ((?!a|b) for (?!a)(?!b)), or as several patterns under allOf"
        )
    parts = [_linear_part(part, is_wanted) for part, is_wanted in split_lookaheads(pattern)]
    if parts and None not in parts:
        return _combined(pattern, tuple(part for part in parts if part is not None))
    looking = _backtracking_part(pattern, looks)
    return _CompiledPattern((looking,), looking.max_chars)


def _combined(pattern: str, parts: tuple[_PatternPart, ...]) -> _CompiledPattern:
    """Return the parts as one pattern. A text is matched with one part after the other, so their costs add up."""
    size = sum(part.bytes for part in parts)
    for most_bytes, most_chars in _SIZE_LIMITS:
        if size <= most_bytes:
            return _CompiledPattern(parts, most_chars)
    raise UnusablePattern(
        f"the parts of the pattern {shown_pattern(pattern)} are too large together; write them with shorter "
        "ranges, and "
        "bound a text by minLength and maxLength"
    )


def split_lookaheads(pattern: str) -> list[tuple[str, bool]]:
    """Split `^(?=A)(?!B)C` into `^(?:A)`, which must match, `^(?:B)`, which must not, and `^C`.

    Returns an empty list if the pattern has no such beginning, or may mean something else than these parts.
    """
    rest = pattern.removeprefix("^")
    if rest == pattern or "[]" in pattern or "[^]" in pattern:  # engines disagree about where such a class ends
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
    """Return where the group ends that `text` begins with, or -1 if it does not begin with one."""
    depth = 0
    for at, sign in _plain_characters(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return at
    return -1


def _has_choice(text: str) -> bool:
    """Return whether there is a | outside all groups, or an unmatched closing bracket."""
    depth = 0
    for _, sign in _plain_characters(text):
        depth += (sign == "(") - (sign == ")")
        if depth < 0 or (sign == "|" and depth == 0):
            return True
    return False


def _plain_characters(text: str) -> list[tuple[int, str]]:
    """Return the characters that are neither escaped nor in a class, and their places."""
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


def _linear_part(pattern: str, is_wanted: bool = True) -> _PatternPart | None:
    """Return the part for the engine that reads a text once. Returns None if that engine does not accept the
    pattern."""
    from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

    for most_bytes, most_chars in _SIZE_LIMITS:
        options = RegexOptions(size_limit=most_bytes, dfa_size_limit=_CACHE_BYTES)
        try:
            validator = Draft202012Validator({"pattern": pattern}, pattern_options=options)
        except ValidationError:
            continue
        return _PatternPart(validator.is_valid, is_wanted, most_chars, most_bytes)
    return None


def _backtracking_part(pattern: str, looks: int) -> _PatternPart:
    """Return the part for the backtracking engine. Each lookaround, and the part between two of them, has a memory of
    its own."""
    from jsonschema_rs import Draft202012Validator, FancyRegexOptions, ValidationError, ValidationErrorKind

    engines = 2 * looks + 1
    steps = _BACKTRACK_STEPS * _FREE_LOOKS // max(_FREE_LOOKS, looks)
    for most_bytes in _BACKTRACK_BYTES:
        options = FancyRegexOptions(backtrack_limit=steps, size_limit=most_bytes, dfa_size_limit=_CACHE_BYTES)
        with suppress(ValidationError):
            validator: Any = Draft202012Validator({"pattern": pattern}, pattern_options=options)
            break
    else:
        raise UnusablePattern(
            f"the pattern {shown_pattern(pattern)} is not in the syntax of ECMA 262, which JSON schema uses, or is "
            "too large; write it in that syntax ($ for \\Z, \\1 for (?P=name)), and bound a text by minLength and "
            "maxLength"
        )

    def finds(text: str) -> bool:
        for error in validator.iter_errors(text):
            if not isinstance(error.kind, ValidationErrorKind.Pattern):
                raise TooLongForPattern(
                    f"a text of {len(text):,} characters is too long for the pattern {shown_pattern(pattern)}: "
                    "the match would take too long"
                )
            return False
        return True

    return _PatternPart(finds, True, _BACKTRACK_CHARS, most_bytes * engines, engines)
