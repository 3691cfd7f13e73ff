"""The kinds of refusals, and whether a retry can help: one table for all services.

The status decides first, then the codes of the body, then its words. If no rule fits, the class of the status decides:
4xx is refused, and 5xx may be retried. The rules are data, in refusal_rules.toml.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from brainq.adapters.models.error_body import ErrorDetail

_LIMIT_AND_REQUESTED = re.compile(r"\blimit:? ([\d,]+).{0,60}?\brequested:? ([\d,]+)")
_UNKNOWN_ERROR = 500  # for an error without any known word, in a stream that began with 200


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the table. Empty `statuses` or `words` match everything."""

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
    """The table. `words` identify a status if a body does not name it."""

    rules: tuple[Rule, ...]
    words: tuple[tuple[int, re.Pattern[str]], ...]


_REFUSED = Rule("refused", False, frozenset(), None)
_FAILED = Rule("server", True, frozenset(), None)
_OVER_LIMIT = "over_limit"


def decide(status: int | None, detail: ErrorDetail) -> Rule:
    """Return the rule for a refusal with this HTTP status.

    None means that the answer began with status 200, so its body decides.
    """
    table = rules()
    asked = _status_in(detail, table) if status is None else status
    if asked in (413, 429) and _is_over_limit(detail.text):
        return next(rule for rule in table.rules if rule.kind == _OVER_LIMIT)
    found = next((rule for rule in table.rules if rule.fits(asked, detail.text)), None)
    return found or (_FAILED if asked >= 500 else _REFUSED)


def _status_in(detail: ErrorDetail, table: Rules) -> int:
    """Return the status that the body of a 200 names, by number or by a word of its codes, or 500 if it names none."""
    if detail.status is not None:
        return detail.status
    for status, words in table.words:
        if any(words.search(code) for code in detail.codes):
            return status
    return _UNKNOWN_ERROR


def _is_over_limit(text: str) -> bool:
    """Return whether the request alone exceeds the limit, as in `Limit 30000, Requested 43210`."""
    found = _LIMIT_AND_REQUESTED.search(text)
    if found is None:
        return False
    limit, requested = (int(number.replace(",", "") or 0) for number in found.groups())
    return requested > limit


@cache
def rules() -> Rules:
    table = tomllib.loads(files("brainq.adapters.models").joinpath("refusal_rules.toml").read_text())
    return Rules(
        tuple(_rule(row) for row in table["rule"]), tuple((row["status"], _any_of(row)) for row in table["word"])
    )


def _rule(row: Mapping[str, Any]) -> Rule:
    words = _any_of(row) if "words" in row else None
    return Rule(row["kind"], row["retry"], frozenset(row.get("status", ())), words, row.get("advice", ""))


def _any_of(row: Mapping[str, Any]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{words})" for words in row["words"]), re.IGNORECASE | re.DOTALL)
