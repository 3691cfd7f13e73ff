"""Which files are text."""

from __future__ import annotations

_TEXTS = frozenset(
    {
        "application/json",
        "application/xml",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/sql",
        "application/javascript",
        "application/x-sh",
        "application/x-ndjson",
        "image/svg+xml",
    }
)


def is_text(media_type: str) -> bool:
    """Whether the bytes are text that a model may read as it is."""
    return media_type.startswith("text/") or media_type in _TEXTS or media_type.endswith(("+json", "+xml"))
