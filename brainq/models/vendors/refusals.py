"""What kind of failure a service's refusal is, and whether asking again can help: one table for all services.

The status decides first, then the codes of the body, then its words. What no rule knows is judged by the class of its
status: 4xx is refused, 5xx may be asked again. The rules are data, in refusal_rules.toml.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from brainq.models.vendors.error_body import ErrorDetail

_LIMIT_AND_REQUESTED = re.compile(r"\blimit:? ([\d,]+).{0,60}?\brequested:? ([\d,]+)")
_UNKNOWN_ERROR = 500  # of a stream that began with 200, whose error names nothing that is known


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the table. `statuses` and `words` may be empty: it then fits any."""

    kind: str
    retry: bool
    statuses: frozenset[int]
    words: re.Pattern[str] | None
    advice: str = ""

    def fits(self, status: int, text: str) -> bool:
        return (not self.statuses or status in self.statuses) and (
            self.words is None or self.words.search(text) is not None
        )


@dataclass(frozen=True, slots=True)
class Rules:
    """The table. `words` has what stands for a status where a body names none."""

    rules: tuple[Rule, ...]
    words: tuple[tuple[int, re.Pattern[str]], ...]


_REFUSED = Rule("refused", False, frozenset(), None)
_FAILED = Rule("server", True, frozenset(), None)
_OVER_LIMIT = "over_limit"


def decide(status: int | None, detail: ErrorDetail) -> Rule:
    """Return the rule for a refusal with HTTP `status`; None: the answer began with 200, and its body decides."""
    table = rules()
    asked = _status_in(detail, table) if status is None else status
    if asked in (413, 429) and _is_over_limit(detail.text):
        return next(rule for rule in table.rules if rule.kind == _OVER_LIMIT)
    found = next((rule for rule in table.rules if rule.fits(asked, detail.text)), None)
    return found or (_FAILED if asked >= 500 else _REFUSED)


def _status_in(detail: ErrorDetail, table: Rules) -> int:
    """Return the status that the body of a 200 names, by number or by a word of its codes. Without one, return 500."""
    if detail.status is not None:
        return detail.status
    for status, words in table.words:
        if any(words.search(code) for code in detail.codes):
            return status
    return _UNKNOWN_ERROR


def _is_over_limit(text: str) -> bool:
    """Return whether the request alone asks for more than the limit, as in `Limit 30000, Requested 43210`."""
    found = _LIMIT_AND_REQUESTED.search(text)
    if found is None:
        return False
    limit, requested = (int(number.replace(",", "") or 0) for number in found.groups())
    return requested > limit


@cache
def rules() -> Rules:
    """Return the table, read once."""
    table = tomllib.loads(files("brainq.models.vendors").joinpath("refusal_rules.toml").read_text())
    return Rules(
        tuple(_rule(row) for row in table["rule"]), tuple((row["status"], _any_of(row)) for row in table["word"])
    )


def _rule(row: Mapping[str, Any]) -> Rule:
    words = _any_of(row) if "words" in row else None
    return Rule(row["kind"], row["retry"], frozenset(row.get("status", ())), words, row.get("advice", ""))


def _any_of(row: Mapping[str, Any]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{words})" for words in row["words"]), re.IGNORECASE | re.DOTALL)
