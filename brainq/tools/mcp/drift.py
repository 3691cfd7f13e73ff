"""How a server's tools differ from those that were pinned. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.tools.mcp.pinned import PinnedServer, hash_of


@dataclass(frozen=True, slots=True)
class Drift:
    """Names of tools, in order."""

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.gone)

    def __str__(self) -> str:
        parts = {"new": self.new, "changed": self.changed, "gone": self.gone}
        return "; ".join(f"{word}: {', '.join(names)}" for word, names in parts.items() if names)


def drift_of(pinned: PinnedServer, found: PinnedServer) -> Drift:
    before, after = pinned.by_name, found.by_name
    both = [name for name in before if name in after]
    return Drift(
        new=tuple(name for name in after if name not in before),
        changed=tuple(name for name in both if hash_of(before[name]) != hash_of(after[name])),
        gone=tuple(name for name in before if name not in after),
    )
