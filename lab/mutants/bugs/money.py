"""Bugs of the money of model calls: what was lost on the way, and the limits that it counts against."""

from __future__ import annotations

from lab.mutants.bug import Bug

BILL = ("tests/unit/engine/models/test_bill.py",)
SPENT = ("tests/unit/engine/models/test_costs.py",)
LOST = ("tests/lua/test_lost_work.py",)
CUT = ("tests/integration/engine/test_money_of_cut_streams.py",)
BUDGETS = ("tests/lua/test_money.py",)
CAPS = ("tests/integration/people/test_budgets.py",)
NOTICES = ("tests/integration/people/test_budget_notices.py",)
KEEPER = ("tests/unit/engine/people/test_budget_desk.py",)
POINTS = ("tests/integration/adapters/sql/test_crash_points.py",)
LUA_MONEY = ("tests/lua/test_money.py",)
SPENDING = ("tests/integration/adapters/sql/test_spending.py",)

BUGS = (
    Bug(
        "what was streamed before a cut is not counted",
        "brainq/engine/models/asking/bill.py",
        "max(self._reported.output_tokens, self._written.tokens, unseen)",
        "max(self._reported.output_tokens, unseen)",
        BILL,
    ),
    Bug(
        "the arguments of a call that was cut are not counted",
        "brainq/engine/models/asking/bill.py",
        "if chunk.arguments:",
        "if chunk.arguments and chunk.text:",
        BILL,
    ),
    Bug(
        "what a stream had told of usage is forgotten when it is cut",
        "brainq/adapters/models/open_answer.py",
        "self._sent.note_usage(reader.usage)",
        "pass",
        CUT,
    ),
    Bug(
        "what broke off is not marked as an estimate",
        "brainq/engine/models/asking/bill.py",
        '"estimated": True,',
        '"estimated": False,',
        BILL,
    ),
    Bug(
        "the limit of money is not held between requests",
        "brainq/engine/models/asking/bill.py",
        "sum(spend.cost_usd or 0.0 for spend in used) + (self.price(provider, model, usage) or 0.0) > self.usd",
        "(self.price(provider, model, usage) or 0.0) > self.usd",
        BILL,
    ),
    Bug(
        "a lost attempt is charged after the next one is allowed",
        "brainq/adapters/redis/lua/step_begin.lua",
        "if thinks then charge_spends(budget, spends, lost) end",
        "",
        LOST,
    ),
    Bug(
        "a dead worker's newest word about its attempt is not charged",
        "brainq/adapters/redis/lua/lib/budget.lua",
        "if of == mark and list ~= '' then",
        "if false then",
        LOST,
    ),
    Bug(
        "requests that broke off before a reply are not charged with it",
        "brainq/adapters/redis/lua/step_commit.lua",
        "charge_spends(budget, spends, lost)\n",
        "",
        LOST,
    ),
    Bug(
        "a lost attempt names the fallback, not its member",
        "brainq/engine/models/costs.py",
        "return first_model(*members[0]) if members else (provider.name, model)",
        "return provider.name, model",
        SPENT,
    ),
    Bug(
        "a cost limit is passed by a fallback's member without a price: the others' prices stand for it",
        "brainq/engine/models/costs.py",
        "return max(known) if len(known) == len(prices) else None",
        "return max(known) if known else None",
        SPENT,
    ),
    Bug(
        "a reservation is kept when its call is over",
        "brainq/adapters/redis/lua/lib/money.lua",
        "redis.call('HINCRBYFLOAT', counter, 'held', -reserved)",
        "",
        BUDGETS,
    ),
    Bug(
        "bills above what was reserved teach nothing",
        "brainq/adapters/redis/lua/lib/money.lua",
        "math.max(1, usd / m.usd, 1 + (before - 1) * FORGIVEN)",
        "1",
        BUDGETS,
    ),
    Bug(
        "a window is granted more than its cap",
        "brainq/adapters/sql/repositories/budgets.py",
        "if needed > cap + 1e-9:",
        "if needed > (cap := 2 * cap) + 1e-9:",
        CAPS,
    ),
    Bug(
        "a lost Redis is taken to have spent nothing",
        "brainq/adapters/redis/script_values.py",
        '"spent": "{}.spent_before",',
        '"spent": "0.0",',
        CAPS,
    ),
    Bug(
        "what another Redis had counted is believed",
        "brainq/adapters/redis/lua/money_grant.lua",
        "if c.run ~= run then",
        "if not c.run then",
        ("tests/lua/test_money.py",),
    ),
    Bug(
        "a raise stays behind when its tenant moves",
        "brainq/contrib/cells/side.py",
        "        other.budgets.put(windows)",
        "        pass",
        ("tests/contrib/cells/test_move_budgets.py",),
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
        "brainq/adapters/redis/lua/money_return.lua",
        "redis.call('HINCRBYFLOAT', counter, 'spent', unused)\n",
        "",
        ("tests/lua/test_money.py",),
    ),
    Bug(
        "people are told of a budget at each grant above four fifths",
        "brainq/adapters/sql/repositories/budgets.py",
        'window["noticed_usd"] == notice.cap_usd',
        "False",
        NOTICES,
    ),
    Bug(
        "a tenant's webhook hears of the budgets of all",
        "brainq/adapters/sql/repositories/deliveries.py",
        "event in webhook.events and is_within(webhook.sessions, session_id)",
        "event in webhook.events and (not turn_id or is_within(webhook.sessions, session_id))",
        NOTICES,
    ),
    Bug(
        "budgets: while home is away a call is at the cap",
        "brainq/engine/people/budgets.py",
        '            return AtCap("wait", window, refusal.start_ms)\n        if granted is None:',
        "            return AtCap(window.budget.at_cap, window, refusal.start_ms)\n        if granted is None:",
        KEEPER,
    ),
    Bug(
        "budgets: what waits for calls in flight asks SQL for more",
        "brainq/engine/people/budgets.py",
        'if refusal.why == "wait":',
        'if refusal.why == "park":',
        KEEPER,
    ),
    Bug(
        "budgets: a call at the cap does not wait for those in flight",
        "brainq/engine/people/budgets.py",
        "waits = refusal.in_flight > 0",
        "waits = refusal.in_flight > 99",
        KEEPER,
    ),
    Bug(
        "budgets: the epoch is noted before Redis has heard of all",
        "brainq/engine/people/budgets.py",
        "        if epoch == self._epoch:\n            return\n        if self.budgets():",
        "        if epoch == self._epoch:\n            return\n        self._epoch = epoch\n        if self.budgets():",
        KEEPER,
    ),
    Bug(
        "budgets: what was given back is spent again after a restore",
        "brainq/engine/people/budgets.py",
        "MoneyGrant(usd, usd, usd, returned_usd=row.returned_usd)",
        "MoneyGrant(usd, usd, usd)",
        KEEPER,
    ),
    Bug(
        "budgets: windows that are over are restored",
        "brainq/engine/people/budgets.py",
        "return [row for row in rows if row.start_ms == starts[row.per][1]]",
        "return [row for row in rows if row.start_ms >= starts[row.per][0]]",
        KEEPER,
    ),
    Bug(
        "budgets: processes hear of a budget before SQL has it",
        "brainq/engine/people/budgets.py",
        "        self.rows.set(budget.scope, budget.per, None if usd is None else budget.usd, "
        "budget.at_cap, by)\n"
        "        self.forget()\n"
        "        self.counters.tell()",
        "        self.counters.tell()\n"
        "        self.rows.set(budget.scope, budget.per, None if usd is None else budget.usd, "
        "budget.at_cap, by)\n"
        "        self.forget()",
        KEEPER,
    ),
    Bug(
        "budgets: whoever sets one goes on with what it knew",
        "brainq/engine/people/budgets.py",
        "        self.forget()\n        self.counters.tell()",
        "        self.counters.tell()",
        KEEPER,
    ),
    Bug(
        "budgets: turns that are parked do not ask again when theirs is set",
        "brainq/engine/people/budgets.py",
        '        self.counters.tell()\n        self.counters.resume(f"{scope}/{per}")',
        "        self.counters.tell()",
        KEEPER,
    ),
    Bug(
        "budgets: parked turns ask again before new ones are let in",
        "brainq/engine/people/budgets.py",
        "        self.rows.mark_spent(scope, per, start_ms, is_spent=False)\n",
        "",
        KEEPER,
    ),
    Bug(
        "budgets: a process reads them before it listens",
        "brainq/engine/people/budgets.py",
        "            self.listen()\n            self._read(READ_AGAIN_S)",
        "            self._read(READ_AGAIN_S)\n            self.listen()",
        KEEPER,
    ),
    Bug(
        "budgets: SQL that was away is asked again in a minute",
        "brainq/engine/people/budgets.py",
        "self._stale_at = time.monotonic() + RETRY_S",
        "self._stale_at = time.monotonic() + good_for_s",
        KEEPER,
    ),
    Bug(
        "budgets: producers go on with what they read a minute ago",
        "brainq/engine/people/budgets.py",
        "            self._read(UNHEARD_S)",
        "            self._read(READ_AGAIN_S)",
        KEEPER,
    ),
    Bug(
        "budgets: a call after the turn is asked for once",
        "brainq/engine/people/budgets.py",
        "        while hold and (refusal :=",
        "        if hold and (refusal :=",
        KEEPER,
    ),
    Bug(
        "budgets: a call whose worst case is not known is free",
        "brainq/contracts/budgets.py",
        "known = usd if usd is not None else least_usd or 0.0",
        "known = usd if usd is not None else 0.0",
        KEEPER,
    ),
    Bug(
        "budgets: one of each is raised for nobody",
        "brainq/engine/people/budgets.py",
        '(wanted != kind or scope != kind or kind == "all")',
        "True",
        KEEPER,
    ),
    Bug(
        "budgets: a tenant's is taken for one that cells share",
        "brainq/engine/people/budgets.py",
        "if budget is not None and is_shared(row.scope):",
        "if budget is not None:",
        KEEPER,
    ),
    Bug(
        "budgets: Redis may spend before SQL has granted",
        "brainq/engine/people/budgets.py",
        "            granted = self.rows.grant(window.scope, window.budget, refusal)\n",
        "            self.counters.grant(window, refusal.start_ms, MoneyGrant(refusal.expected, "
        "0.0, 0.0))\n"
        "            granted = self.rows.grant(window.scope, window.budget, refusal)\n",
        KEEPER,
    ),
    Bug(
        "budgets: a window begins with its children's calls twice",
        "brainq/adapters/sql/repositories/budgets.py",
        'UTC), spends.c.kind != "child"',
        "UTC)",
        SPENDING,
    ),
    Bug(
        "budgets: a window begins with what turns of before have cost",
        "brainq/adapters/sql/repositories/budgets.py",
        "turns.c.accepted_at >= datetime.fromtimestamp(start_ms / 1000, UTC)",
        "turns.c.accepted_at >= datetime.fromtimestamp(0, UTC)",
        SPENDING,
    ),
    Bug(
        "budgets: the one of a tenant begins with what all have cost",
        "brainq/adapters/sql/repositories/budgets.py",
        'elif kind == "tenant":',
        'elif kind == "tenants":',
        SPENDING,
    ),
    Bug(
        "budgets: a turn at the end of a report is in two",
        "brainq/adapters/sql/repositories/spending.py",
        "chosen.where(_T.accepted_at < until)",
        "chosen.where(_T.accepted_at <= until)",
        SPENDING,
    ),
    Bug(
        "budgets: a turn at the begin of a report is in none",
        "brainq/adapters/sql/repositories/spending.py",
        "chosen.where(_T.accepted_at >= since)",
        "chosen.where(_T.accepted_at > since)",
        SPENDING,
    ),
    Bug(
        "budgets: an instant is bound otherwise than it is stored",
        "brainq/adapters/sql/tables/types.py",
        'str(as_text(value)).removesuffix("000")',
        "str(as_text(value))",
        SPENDING,
    ),
    Bug(
        "budgets: home hears of what was given back before the cell has written it down",
        "brainq/adapters/sql/repositories/shared_budgets.py",
        '        self._db.put(_RETURNED, {**_key(scope, per, start_ms), "back": returned}, '
        "durably=True)\n"
        "        self._ask_home(lambda home: home.give_back(self._cell, scope, per, start_ms, "
        "returned))",
        "        self._ask_home(lambda home: home.give_back(self._cell, scope, per, start_ms, "
        "returned))\n"
        '        self._db.put(_RETURNED, {**_key(scope, per, start_ms), "back": returned}, '
        "durably=True)",
        POINTS,
    ),
    Bug(
        "budgets: each cell's lease is forgotten when it asks again",
        "brainq/adapters/sql/repositories/shared_budgets.py",
        "decide_lease(wish, leases.get(cell, Lease()), others, cap)",
        "decide_lease(wish, Lease(), others, cap)",
        POINTS,
    ),
    Bug(
        "budgets: a refused lease refuses no new turns",
        "brainq/adapters/sql/repositories/shared_budgets.py",
        "                self.mark_spent(scope, budget.per, refusal.start_ms, is_spent=True)\n",
        "",
        POINTS,
    ),
    Bug(
        "budgets: a cell is leased what another has",
        "brainq/adapters/sql/repositories/shared_budgets.py",
        "if name not in (cell, _WHOLE)]",
        "if name not in (*leases, cell, _WHOLE)]",
        POINTS,
    ),
    Bug(
        "budgets: decide: each cell's lease is forgotten",
        "brainq/contracts/budget_lease.py",
        "leased = max(own.leased_usd, wish.granted)",
        "leased = wish.granted",
        ("tests/unit/test_budget_leases.py",),
    ),
    Bug(
        "budgets: a lease that is in use is given back",
        "brainq/engine/upkeep/budget_leases.py",
        "for_s >= UNUSED_S and not counter.in_flight and",
        "for_s >= UNUSED_S and",
        ("tests/unit/test_budget_leases.py",),
    ),
    Bug(
        "budgets: a blind call is never counted down",
        "brainq/adapters/redis/lua/lib/money.lua",
        "      if m.blind then redis.call('HINCRBY', counter, 'blind', -1) end",
        "      if m.gone then redis.call('HINCRBY', counter, 'blind', -1) end",
        LUA_MONEY,
    ),
    Bug(
        "budgets: a blind call after its turn is never counted down",
        "brainq/adapters/redis/lua/money_take.lua",
        "if held.blind then",
        "if held.gone then",
        ("tests/lua/test_money.py",),
    ),
    Bug(
        "budgets: two blind calls are in flight at once",
        "brainq/adapters/redis/lua/lib/money.lua",
        "is_blind and tonumber(c.blind or 0) > 0",
        "is_blind and tonumber(c.blind or 0) > 1",
        LUA_MONEY,
    ),
    Bug(
        "budgets: what is held is counted in the window of yesterday",
        "brainq/adapters/redis/lua/lib/money.lua",
        "if at <= now then start = at end",
        "if at <= now and start == w.starts[1] then start = w.starts[2] end",
        LUA_MONEY,
    ),
    Bug(
        "budgets: no room is left for a last answer",
        "brainq/adapters/redis/lua/lib/money.lua",
        "(in_flight > 0 and trust or 1) * w.room",
        "(in_flight > 0 and trust or 1)",
        LUA_MONEY,
    ),
    Bug(
        "budgets: a blind call's bill teaches what estimates are worth",
        "brainq/adapters/redis/lua/lib/money.lua",
        "if not m.blind and m.usd > 0",
        "if m.usd > 0",
        LUA_MONEY,
    ),
    Bug(
        "budgets: near the cap a call wants what it may be billed",
        "brainq/adapters/redis/lua/lib/money.lua",
        "c.full == '1' and wanted or expected",
        "expected",
        LUA_MONEY,
    ),
    Bug(
        "budgets: distrust has no bound",
        "brainq/adapters/redis/lua/lib/money.lua",
        "math.min(MOST_DISTRUST, math.max",
        "math.min(1000, math.max",
        LUA_MONEY,
    ),
    Bug(
        "budgets: distrust is forgiven at once",
        "brainq/adapters/redis/lua/lib/money.lua",
        "1 + (before - 1) * FORGIVEN",
        "1",
        LUA_MONEY,
    ),
    Bug(
        "budgets: a window is reserved though another refuses",
        "brainq/adapters/redis/lua/lib/money.lua",
        "'held', reserved)",
        "'held', reserved * 2)",
        LUA_MONEY,
    ),
)
