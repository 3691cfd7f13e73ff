"""The client's verbs about money: the spend report, from SQL, and budgets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from brainq.brain.brains import models_of
from brainq.client import checks
from brainq.client.connection import Connection
from brainq.client.lists import checked_instant
from brainq.contracts.act import NewAct
from brainq.contracts.answers import listed
from brainq.contracts.budgets import BudgetState
from brainq.contracts.spending import SpendLine, check_spend_by
from brainq.fleet.combine import combine_same
from brainq.models.costs import unpriced_models
from brainq.wiring.cells import Cells

DEFAULT_SPAN = timedelta(days=30)


class BudgetVerbs:
    """Budgets: `client.budgets`.

        for budget in client.budgets.list():
            print(budget.scope, budget.per, budget.left_usd, budget.parked)
        client.budgets.raise_by("tenant acme:", "day", 5, by="ann")

    A scope is `all`; `tenant`, `user` or `brain` for each of them; or one: `tenant acme:`, `user acme:ann:`, `brain
    support`.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self) -> tuple[BudgetState, ...]:
        """Each budget in its present window: its amount, what is spent and held, and the turns parked for it."""
        asked = self._connection.ask(lambda wiring: wiring.budgets.list())
        found = combine_same((state for states in asked.values for state in states), "scope", "per")
        return listed(sorted(found, key=lambda state: (state.scope, state.per)), asked)

    def set(self, scope: str, *, per: str, usd: float | None, at_cap: str = "park", by: str = "") -> tuple[str, ...]:
        """Set a budget, over BRAINQ_BUDGETS. Every process heeds it within a minute, those that hear of it at once.

        Returns the models without a known price: the budget does not hold what they cost. They are those that were
        asked in its scope in the last 30 days, and those of this process's brains.

        per      hour, day or month
        usd      US dollars a window; None: as BRAINQ_BUDGETS has it again
        at_cap   park, refuse or finish: see docs/operate/budgets.md
        by       who sets it, for the record

        Raises InvalidInput; CellUnreachable where a cell does not answer: the others have it.
        """
        who = checks.name(by)
        amount = "as configured" if usd is None else f"{usd:g}"
        self._connection.do_in_each(
            lambda wiring: wiring.budgets.set(scope, per, usd, at_cap, who),
            NewAct("set budget", f"{scope} {per} {amount}", who),
        )
        return () if usd is None else self._unpriced_models(*scope.partition(" ")[::2])

    def _unpriced_models(self, kind: str, name: str) -> tuple[str, ...]:
        begin, theirs = datetime.now(UTC) - DEFAULT_SPAN, (name,) if name and kind in ("tenant", "user") else None
        asked = self._connection.ask(
            lambda wiring: wiring.store.spending.report(("brain", "model"), begin, None, theirs), prefixes=theirs
        )
        is_one = kind == "brain" and bool(name)
        lines = (line for lines in asked.values for line in lines if not is_one or line.brain == name)
        found = {line.model for line in lines if line.unpriced_calls and line.model}
        brains = [brain for brain in self._connection.cells.home.brains if not is_one or brain.name == name]
        of_brains = {
            model for model in unpriced_models(models_of(brains)) if (model.partition(":")[2] or model) not in found
        }
        return tuple(sorted(found | of_brains))

    def raise_by(self, scope: str, per: str, usd: float, *, by: str = "") -> float:
        """Let a budget's present window have so many dollars more; its amount then. Turns that are parked for it go on,
        tenants in turn. Raises InvalidInput."""
        who = checks.name(by)
        kind, _, name = scope.partition(" ")

        def raise_in(cells: Cells) -> float:
            if kind in ("tenant", "user") and name:
                wiring = cells.of_session(f"{name}1")
                wiring.tenants.require_here(f"{name}1")  # a front may believe in the cell that it has left
                return wiring.budgets.raise_by(scope, per, usd, who)
            cap = cells.home.budgets.raise_by(scope, per, usd, who)
            if len(cells.names) > 1:  # one that is away finds it by itself
                cells.ask(lambda wiring: wiring.budgets.resume(scope, per))
            return cap

        return self._connection.do_in_all(raise_in, NewAct("raise budget", f"{scope} {per} +{usd:g}", who))


class SpendVerbs:
    """What a Client does with money."""

    _connection: Connection

    @property
    def budgets(self) -> BudgetVerbs:
        """How much money model calls may cost by hour, day and month, to be listed, set and raised."""
        return BudgetVerbs(self._connection)

    def spend(
        self,
        *,
        by: Sequence[str] = ("day",),
        since: datetime | None = None,
        until: datetime | None = None,
        session_prefixes: Sequence[str] | None = None,
    ) -> tuple[SpendLine, ...]:
        """What model calls have cost, one line a group: of turns accepted from `since` on and before `until`.

        by       of day, tenant, brain, model and kind. With `tool` tool calls are counted, by tool, day, tenant, brain
        since    by default 30 days ago
        session_prefixes   only of sessions that begin with one of these prefixes, such as ("acme:",)

        A turn is in it once its finalizer has logged it, and until it is pruned. Raises InvalidInput.
        """
        begin = checked_instant("since", since) or datetime.now(UTC) - DEFAULT_SPAN
        theirs = checks.session_prefixes(session_prefixes)
        groups, end = check_spend_by(by), checked_instant("until", until)
        asked = self._connection.ask(
            lambda wiring: wiring.store.spending.report(groups, begin, end, theirs), prefixes=theirs
        )
        if len(asked.answers) == 1:
            return listed(asked.values[0], asked)
        lines = combine_same((line for lines in asked.values for line in lines), *groups)
        return listed(sorted(lines, key=lambda line: [getattr(line, name) or "" for name in groups]), asked)
