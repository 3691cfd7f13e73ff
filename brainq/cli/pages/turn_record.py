"""Print a finished turn's record in SQL as sections of the page of `brainq show`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Group
from rich.text import Text

from brainq.cli.output import ago, clean, duration, short, status_text
from brainq.cli.pages.layout import Column, PageTable, fact, key, words
from brainq.contracts.evaluation import RuntimeDecisionRecord
from brainq.contracts.model import Spend
from brainq.contracts.rows import JudgementRow, MemoryRow, ObservationRow, StepRow

SCORE_WIDTH = 10
TEXT_WIDTH = 100
MAX_LISTED_MEMORIES = 20  # --json has all


@dataclass(frozen=True)
class CostSum:
    """The cost of several calls.

    known     US dollars of the calls with a known price
    unknown   the number of calls without one
    """

    known: float
    unknown: int

    @classmethod
    def total(cls, costs: Iterable[float | None]) -> CostSum:
        known = list(costs)
        return cls(sum(cost for cost in known if cost is not None), known.count(None))

    def __str__(self) -> str:
        if not self.unknown:
            return dollars(self.known)
        return f"more than {dollars(self.known)}" if self.known else "no price"


def dollars(cost: float) -> str:
    """Format a cost as `$0`, `$0.000034`, `$0.0120` or `$12.50`. Below one dollar it has at least four decimals and two
    significant digits.
    """
    if cost <= 0:
        return "$0"
    if cost < 1e-7:
        return "under $0.0000001"
    if cost >= 1:
        return f"${cost:,.2f}"
    places = 4
    while cost * 10**places < 10:
        places += 1
    return f"${cost:.{places}f}"


def cost_section(spends: Sequence[Spend]) -> PageTable:
    """Return one line per model call, and their sum; `~` marks tokens that brainq estimated."""
    writes_cache = any(spend.cache_creation_tokens for spend in spends)
    numbers = ("in", "out", "cached", *(("to cache",) if writes_cache else ()))
    tokens = [fact(name, 5, right=True) for name in numbers]
    table, step, price = PageTable(), key("step"), Column("cost", "key", right=True)
    for spend in spends:
        cost = Text("no price", "dim") if spend.cost_usd is None else Text(dollars(spend.cost_usd))
        style = "" if spend.kind == "step" else "yellow" if spend.kind == "lost" else "cyan"
        table.add(
            {
                step: str(spend.step),
                fact("kind", 6): Text(spend.kind, style),
                words("model", 1): short(spend.model, 40),
                **dict(zip(tokens, _tokens((spend,), writes_cache), strict=True)),
                price: cost,
            }
        )
    if len(spends) > 1:
        total = Text(str(CostSum.total(spend.cost_usd for spend in spends)), "bold")
        sums = dict(zip(tokens, _tokens(spends, writes_cache), strict=True))
        table.add({step: Text("total", "bold"), **sums, price: total})
    return table


def decision_section(record: RuntimeDecisionRecord) -> PageTable:
    """Return the decision record: how the turn reached its answer."""
    template = " ".join(filter(None, (record.prompt_id, record.prompt_version, *record.prompt_tags)))
    values = {
        "strategy": record.strategy,
        "key": record.key,
        "tools": clean(", ".join(record.tools), lines=False),
        "context": record.context_hash,
        "prompt": record.prompt_hash,
        "template": clean(template, lines=False),
        "turn": f"number {record.turn_number} of its session",
    }
    table = PageTable(header=False)
    for name, value in values.items():
        if value:
            table.add({key("what"): name, words("value", 1): value})
    return table


def judgement_section(turn_id: str, rows: Sequence[JudgementRow]) -> Group:
    """Return one line per judge, with its score or its state."""
    table = PageTable()
    for row in rows:
        why = Text(short(row.reason or "", TEXT_WIDTH))
        if row.state != "done":
            why = Text(short(row.error or "", TEXT_WIDTH), "red")
            if row.state == "pending":
                why = Text(_due(row), "dim").append("  " if row.error else "").append_text(why)
        table.add(
            {
                key("judge"): row.judge,
                key("state"): status_text(row.state),
                fact("score", 6): Text("") if row.score is None else _score(row.score),
                fact("by", 2): Text(" ".join(filter(None, (row.method or "", short(row.model or "", 30)))), "dim"),
                fact("tries", 3): str(row.tries),
                fact("tokens", 1): _judging_tokens(row),
                words("reason", 5): why,
            }
        )
    return Group(table, *_remedies(turn_id, (f"judge:{row.judge}" for row in rows if row.state == "dead")))


def memory_section(memories: Sequence[MemoryRow], observations: Sequence[ObservationRow]) -> PageTable:
    """Return the memories and observations that this turn created, and how often each was seen."""
    table, what = PageTable(), words("what", 4, 30)
    rows = (*memories, *observations)
    for row in rows[:MAX_LISTED_MEMORIES]:
        table.add(
            {
                fact("kind", 3): Text(row.kind.replace("_", " "), "cyan"),
                what: short(row.text, TEXT_WIDTH),
                fact("seen", 2): "once" if row.times_seen == 1 else f"{row.times_seen} times",
                words("scope", 1): Text(short(row.scope, 30), "dim"),
            }
        )
    if len(rows) > MAX_LISTED_MEMORIES:
        table.add({what: Text(f"... {len(rows) - MAX_LISTED_MEMORIES} more; --json has them all", "dim")})
    return table


def step_section(turn_id: str, rows: Sequence[StepRow]) -> Group:
    """Return the state of each finalizer step, with the command that retries dead steps."""
    table = PageTable(
        {
            key("step"): row.step,
            key("state"): status_text(row.state),
            fact("tries", 2): str(row.tries),
            fact("when", 1): Text(ago(row.updated_at), "dim"),
            words("error", 3): Text(short(row.error or "", TEXT_WIDTH), "red"),
        }
        for row in rows
    )
    return Group(table, *_remedies(turn_id, (row.step for row in rows if row.state == "dead")))


def _remedies(turn_id: str, dead: Iterable[str]) -> list[Text]:
    return [
        Text(f"{name} is dead; to retry it: ", "yellow").append(f"brainq finalize retry {turn_id} {name}", "bold")
        for name in dead
    ]


def _tokens(spends: Sequence[Spend], writes_cache: bool) -> list[str]:
    names = ["input_tokens", "output_tokens", "cache_read_tokens"]
    if writes_cache:
        names.append("cache_creation_tokens")
    about = "~" if any(spend.estimated for spend in spends) else ""
    return [f"{about}{sum(getattr(spend, name) for spend in spends):,}" for name in names]


def _judging_tokens(row: JudgementRow) -> Text:
    if not (row.input_tokens or row.output_tokens):
        return Text("")
    return Text(f"{row.input_tokens or 0:,} in, {row.output_tokens or 0:,} out", "dim")


def _score(score: float) -> Text:
    full = round(score * SCORE_WIDTH)
    style = "green" if score >= 0.7 else "yellow" if score >= 0.4 else "red"
    return Text("█" * full, style).append("░" * (SCORE_WIDTH - full), "dim").append(f" {score:.2f}", style)


def _due(row: JudgementRow) -> str:
    wait_ms = (row.due_at - datetime.now(UTC)).total_seconds() * 1000
    if wait_ms <= 0:
        return f"due {ago(row.due_at)}"
    return f"next try in {duration(wait_ms)}" if row.error else f"running, for at most {duration(wait_ms)}"
