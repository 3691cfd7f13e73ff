"""The report of all worlds of a run."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

SHOWN = 10


@dataclass
class Report:
    """The sums of all worlds.

    digests: a digest of each world's trace.
    trace: the last lines of the first world that broke a promise.
    """

    turns: int = 0
    worlds: int = 0
    virtual_s: float = 0.0
    took_s: float = 0.0
    cpu_s: float = 0.0
    fired: Counter[str] = field(default_factory=Counter[str])
    endings: Counter[str] = field(default_factory=Counter[str])
    effects: Counter[str] = field(default_factory=Counter[str])
    continued: Counter[str] = field(default_factory=Counter[str])
    digests: list[str] = field(default_factory=list[str])
    broken: list[str] = field(default_factory=list[str])
    trace: list[str] = field(default_factory=list[str])

    @property
    def digest(self) -> str:
        """Return one digest for all worlds. Two runs with equal digests did the same."""
        return hashlib.sha256(" ".join(self.digests).encode()).hexdigest()[:16]

    def lines(self) -> list[str]:
        """Return the report as lines of text."""
        rate = self.turns / self.took_s if self.took_s else 0.0
        rate_cpu = self.turns / self.cpu_s if self.cpu_s else 0.0
        return [
            f"turns:    {self.turns} in {self.worlds} worlds, {self.virtual_s / 3600:.2f} virtual hours",
            f"rate:     {rate:.0f} turns/s over {self.took_s:.0f} s; {rate_cpu:.0f} a second of CPU",
            f"endings:  {_counted(self.endings)}",
            f"effects:  {_counted(self.effects)}",
            f"continued: {_counted(self.continued)}",
            f"faults:   {_counted(self.fired)}",
            f"trace:    {self.digest}",
            f"broken promises: {len(self.broken)}",
            *(f"  {what}" for what in self.broken[:SHOWN]),
        ]


def _counted(counts: Mapping[str, int]) -> str:
    found = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name} {count}" for name, count in found) or "none"
