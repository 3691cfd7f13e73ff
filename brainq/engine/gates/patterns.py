"""Regular expressions of schemas, matched in bounded time, and the cache of compiled ones. Their syntax is ECMA 262's,
as in JSON schema.

An engine that reads a text once accepts nearly all patterns. Its time grows with the text and with the compiled size of
the pattern, so a large pattern is matched with short texts only. That engine has no lookarounds and no references.
Patterns that have some go to a backtracking engine, which gives up after a number of steps. A lookaround or a reference
may read the whole text at each step, and has memory of its own. Therefore a pattern may have only a few, and in a long
text the engine takes only as many steps as lookaheads at the beginning of a pattern need, such as `^(?!\\s*$)`.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
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
class _Engine:
    """A compiled pattern for texts of at most `max_chars`.

    max_bytes: the largest size of the compiled pattern.
    matchers: how many automata it has, each with a cache of its own.
    """

    validator: Any
    max_chars: int
    max_bytes: int
    matchers: int

    def matches(self, text: str) -> bool | None:
        """Return whether the text contains what the pattern looks for, or None if that takes too many steps."""
        from jsonschema_rs import ValidationErrorKind

        if self.validator.is_valid(text):
            return True
        (error,) = self.validator.iter_errors(text)
        return False if isinstance(error.kind, ValidationErrorKind.Pattern) else None


@dataclass(frozen=True, slots=True)
class _CompiledPattern:
    """A pattern that is ready to match. `engines` has the one for the shortest texts first."""

    engines: tuple[_Engine, ...]

    @property
    def held_bytes(self) -> int:
        return sum(engine.max_bytes + _CACHE_BYTES * engine.matchers for engine in self.engines)


def matches_anywhere(pattern: str, text: str) -> bool:
    """Return whether `text` matches `pattern` anywhere. Raises UnusablePattern and TooLongForPattern."""
    engines = _compiled(pattern).engines
    text = clean(text)
    engine = next((each for each in engines if len(text) <= each.max_chars), None)
    found = None if engine is None else engine.matches(text)
    if found is None:
        most = next((each.max_chars for each in reversed(engines) if each.max_chars < len(text)), None)
        why = ": the match would take too long" if most is None else f"; at most {most:,} are matched"
        raise TooLongForPattern(
            f"a text of {len(text):,} characters is too long for the pattern {shown_pattern(pattern)}{why}"
        )
    return found


def check_pattern(pattern: str) -> int:
    """Return the largest compiled size of the pattern, in bytes. Raises UnusablePattern."""
    return _compiled(pattern).engines[0].max_bytes


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
    if (linear := _linear_engine(pattern)) is not None:
        return _CompiledPattern((linear,))
    if (looks := len(_LOOK.findall(pattern))) > MAX_LOOKS:
        raise UnusablePattern(
            f"the pattern {shown_pattern(pattern)} looks ahead, behind or back {looks:,} times; write it with at most "
            f"{MAX_LOOKS} looks, such as one with choices ((?!a|b) for (?!a)(?!b)), or as several patterns under allOf"
        )
    return _CompiledPattern(tuple(_backtracking_engines(pattern, looks)))


def _linear_engine(pattern: str) -> _Engine | None:
    """Return the engine that reads a text once. Returns None if it does not accept the pattern."""
    from jsonschema_rs import RegexOptions

    for max_bytes, max_chars in _SIZE_LIMITS:
        options = RegexOptions(size_limit=max_bytes, dfa_size_limit=_CACHE_BYTES)
        if (validator := _validator(pattern, options)) is not None:
            return _Engine(validator, max_chars, max_bytes, 1)
    return None


def _backtracking_engines(pattern: str, looks: int) -> Iterator[_Engine]:
    """Yield the engine for short texts, which may go back often, and one for long texts, which goes back once a look.

    Each lookaround, and the part between two of them, is an automaton of its own.
    """
    from jsonschema_rs import FancyRegexOptions

    matchers = 2 * looks + 1

    def engine(max_bytes: int, max_chars: int, steps: int) -> _Engine | None:
        options = FancyRegexOptions(backtrack_limit=steps, size_limit=max_bytes, dfa_size_limit=_CACHE_BYTES)
        validator = _validator(pattern, options)
        return None if validator is None else _Engine(validator, max_chars, max_bytes * matchers, matchers)

    steps = _BACKTRACK_STEPS * _FREE_LOOKS // max(_FREE_LOOKS, looks)
    short = next(filter(None, (engine(most, _BACKTRACK_CHARS, steps) for most in _BACKTRACK_BYTES)), None)
    if short is None:
        raise UnusablePattern(
            f"the pattern {shown_pattern(pattern)} is not in the syntax of ECMA 262, which JSON schema uses, or is "
            "too large; write it in that syntax ($ for \\Z, \\1 for (?P=name)), and bound a text by minLength and "
            "maxLength"
        )
    yield short
    yield from islice(filter(None, (engine(most // matchers, chars, looks + 1) for most, chars in _SIZE_LIMITS)), 1)


def _validator(pattern: str, options: Any) -> Any:
    from jsonschema_rs import Draft202012Validator, ValidationError

    with suppress(ValidationError):
        return Draft202012Validator({"pattern": pattern}, pattern_options=options)
    return None
