"""The client's verbs about money: the spend report, from SQL, and budgets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from brainq.app.wiring.cells import Cells
from brainq.client import checks
from brainq.client.connection import Connection
from brainq.client.lists import checked_instant
from brainq.contracts.act import NewAct
from brainq.contracts.answers import listed
from brainq.contracts.budgets import BudgetState
from brainq.contracts.spending import SpendLine, check_spend_by
from brainq.engine.brain.brains import models_of
from brainq.engine.models.costs import unpriced_models
from brainq.fleet.combine import combine_same

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
        """List the budgets in their current windows: the amount, what is spent and reserved, and the number of turns
        that each has parked."""
        asked = self._connection.ask(lambda wiring: wiring.budgets.list())
        found = combine_same((state for states in asked.values for state in states), "scope", "per")
        return listed(sorted(found, key=lambda state: (state.scope, state.per)), asked)

    def set(self, scope: str, *, per: str, usd: float | None, at_cap: str = "park", by: str = "") -> tuple[str, ...]:
        """Set a budget in place of the one in BRAINQ_BUDGETS. It reaches every process within a minute, most at once.

        Returns the models without a known price, whose costs the budget cannot count. These are models that were used
        in its scope in the last 30 days, and models of this process's brains.

        per: hour, day or month.
        usd: US dollars a window. None: the amount of BRAINQ_BUDGETS again.
        at_cap: park, refuse or finish; see docs/operate/budgets.md.
        by: who sets it, for the audit log.

        Raises InvalidInput, and CellUnreachable if a cell does not answer: the others have the budget.
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
        """Raise a budget by `usd` dollars in its current window, and return its amount then.

        Turns that are parked for it continue, tenants in turn. Raises InvalidInput.
        """
        who = checks.name(by)
        kind, _, name = scope.partition(" ")

        def raise_in(cells: Cells) -> float:
            if kind in ("tenant", "user") and name:
                wiring = cells.of_session(f"{name}1")
                wiring.tenants.require_here(f"{name}1")  # this front may not know of a move
                return wiring.budgets.raise_by(scope, per, usd, who)
            cap = cells.home.budgets.raise_by(scope, per, usd, who)
            if len(cells.names) > 1:  # a cell that is away finds the raise by itself
                cells.ask(lambda wiring: wiring.budgets.resume(scope, per))
            return cap

        return self._connection.do_in_all(raise_in, NewAct("raise budget", f"{scope} {per} +{usd:g}", who))


class SpendVerbs:
    """The part of `Client` about money."""

    _connection: Connection

    @property
    def budgets(self) -> BudgetVerbs:
        """The budgets of model calls by hour, day and month."""
        return BudgetVerbs(self._connection)

    def spend(
        self,
        *,
        by: Sequence[str] = ("day",),
        since: datetime | None = None,
        until: datetime | None = None,
        session_prefixes: Sequence[str] | None = None,
    ) -> tuple[SpendLine, ...]:
        """Report what model calls have cost in turns accepted from `since` on and before `until`, one line per group.

        by: some of day, tenant, brain, model and kind. With `tool`, tool calls are counted, by day, tenant, brain too.
        since: by default 30 days ago.
        session_prefixes: only sessions that begin with one of these prefixes, such as ("acme:",).

        A turn counts from when its finalizer has logged it until it is pruned. Raises InvalidInput.
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
