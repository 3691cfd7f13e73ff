"""How people write a span of time: `90m`, `12h`, `30d`, `8w`."""

from __future__ import annotations

import re

from brainq.errors import InvalidInput

SECONDS = {"m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_SPAN = re.compile(r"\s*(\d{1,6}(?:\.\d{1,3})?)\s*([mhdw])\s*", re.ASCII)


def span_s(option: str, value: str) -> float:
    """Its seconds. Raises InvalidInput, naming the option, for anything else."""
    found = _SPAN.fullmatch(value)
    if found is None:
        raise InvalidInput(
            option,
            f"{value!r} is no span of time; write a number and m, h, d or w, such as 90m, 12h, 30d or 8w",
        )
    return float(found[1]) * SECONDS[found[2]]
