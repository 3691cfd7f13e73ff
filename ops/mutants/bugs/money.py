"""Bugs of the money of model calls: what was lost on the way, and the limits that it counts against."""

from __future__ import annotations

from ops.mutants.bug import Bug

BILL = ("tests/unit/models/test_bill.py",)
SPENT = ("tests/unit/models/test_costs.py",)
LOST = ("tests/lua/test_lost_attempts.py",)
CUT = ("tests/integration/test_money_of_cut_streams.py",)
BUDGETS = ("tests/lua/test_money.py",)
CAPS = ("tests/integration/test_budgets.py",)
NOTICES = ("tests/integration/test_budget_notices.py",)

BUGS = (
    Bug(
        "what was streamed before a cut is not counted",
        "brainq/models/asking/bill.py",
        "max(self._reported.output_tokens, self._written.tokens)",
        "self._reported.output_tokens",
        BILL,
    ),
    Bug(
        "the arguments of a call that was cut are not counted",
        "brainq/models/asking/bill.py",
        "if chunk.arguments:",
        "if chunk.arguments and chunk.text:",
        BILL,
    ),
    Bug(
        "what a stream had told of usage is forgotten when it is cut",
        "brainq/models/asking/open_answer.py",
        "self._permit.note_usage(reader.usage)",
        "pass",
        CUT,
    ),
    Bug(
        "what broke off is not marked as an estimate",
        "brainq/models/asking/bill.py",
        '"estimated": True,',
        '"estimated": False,',
        BILL,
    ),
    Bug(
        "the limit of money is not held between requests",
        "brainq/models/asking/bill.py",
        "sum(spend.cost_usd or 0.0 for spend in used) + (self.price(provider, model, usage) or 0.0) > self.usd",
        "(self.price(provider, model, usage) or 0.0) > self.usd",
        BILL,
    ),
    Bug(
        "a lost attempt is charged after the next one is allowed",
        "brainq/state/lua/step_begin.lua",
        "if thinks then charge_spends(budget, spends, lost) end",
        "",
        LOST,
    ),
    Bug(
        "a dead worker's newest word about its attempt is not charged",
        "brainq/state/lua/lib/budget.lua",
        "if of == mark and list ~= '' then",
        "if false then",
        LOST,
    ),
    Bug(
        "requests that broke off before a reply are not charged with it",
        "brainq/state/lua/step_commit.lua",
        "charge_spends(budget, spends, lost)\n",
        "",
        LOST,
    ),
    Bug(
        "a lost attempt names the fallback, not its member",
        "brainq/models/costs.py",
        "return first_model(*members[0]) if members else (provider.name, model)",
        "return provider.name, model",
        SPENT,
    ),
    Bug(
        "a cost limit is passed by a fallback's member without a price: the others' prices stand for it",
        "brainq/models/costs.py",
        "return max(known) if len(known) == len(prices) else None",
        "return max(known) if known else None",
        SPENT,
    ),
    Bug(
        "a reservation is kept when its call is over",
        "brainq/state/lua/lib/money.lua",
        "redis.call('HINCRBYFLOAT', key, 'held', -hold[2])",
        "",
        BUDGETS,
    ),
    Bug(
        "bills above what was reserved teach nothing",
        "brainq/state/lua/lib/money.lua",
        "math.max(1, usd / m.usd, 1 + (before - 1) * FORGIVEN)",
        "1",
        BUDGETS,
    ),
    Bug(
        "a window is granted more than its cap",
        "brainq/store/repositories/budgets.py",
        "if needed > cap + 1e-9:",
        "if needed > (cap := 2 * cap) + 1e-9:",
        CAPS,
    ),
    Bug(
        "a lost Redis is taken to have spent nothing",
        "brainq/state/money.py",
        "spent=grant.spent_before,",
        "spent=0.0,",
        CAPS,
    ),
    Bug(
        "what another Redis had counted is believed",
        "brainq/state/lua/money_grant.lua",
        "if c.run ~= run then",
        "if not c.run then",
        ("tests/lua/test_money_grant.py",),
    ),
    Bug(
        "a raise stays behind when its tenant moves",
        "brainq/cells/side.py",
        "        other.budgets.put(windows)",
        "        pass",
        ("tests/integration/cells/test_move_budgets.py",),
    ),
    Bug(
        "what home has leased to other cells is leased again",
        "brainq/contracts/budget_lease.py",
        " - sum(other.leased_usd - other.returned_usd for other in others)",
        "",
        ("tests/unit/test_budget_leases.py",),
    ),
    Bug(
        "a lease that was given back can be spent, too",
        "brainq/state/lua/money_return.lua",
        "redis.call('HINCRBYFLOAT', counter, 'spent', unused)\n",
        "",
        ("tests/lua/test_money_return.py",),
    ),
    Bug(
        "people are told of a budget at each grant above four fifths",
        "brainq/store/repositories/budgets.py",
        'window["noticed_usd"] == notice.cap_usd',
        "False",
        NOTICES,
    ),
    Bug(
        "a tenant's webhook hears of the budgets of all",
        "brainq/store/repositories/deliveries.py",
        "event in webhook.events and is_within(webhook.sessions, session_id)",
        "event in webhook.events and (not turn_id or is_within(webhook.sessions, session_id))",
        NOTICES,
    ),
)
