"""How much the patterns of a schema may compile to, all together: that is the time it takes to check them."""

from __future__ import annotations

from brainq.gates.patterns import UnusablePattern, check_pattern

MAX_COMPILED_BYTES = 16_000_000


class PatternSizes:
    """Of one schema, or of several that come together. A pattern that comes again costs nothing."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._bytes = 0

    def add(self, pattern: str) -> None:
        """Raises UnusablePattern, also for one too many."""
        if pattern in self._seen:
            return
        self._bytes += check_pattern(pattern)
        self._seen.add(pattern)
        if self._bytes > MAX_COMPILED_BYTES:
            raise UnusablePattern(
                f"its {len(self._seen):,} patterns up to here are too large together; write fewer, or with shorter "
                "ranges, and bound a text by minLength and maxLength"
            )
