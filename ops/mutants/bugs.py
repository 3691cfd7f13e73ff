"""The bugs. Those of the Lua scripts are in `tests/support/model/mutants.py`, where random schedules must find them."""

from __future__ import annotations

from ops.mutants.bug import Bug

DECIDE = ("tests/unit/turn/test_decide.py",)
RESERVED = ("tests/integration/test_reserved.py",)

BUGS = (
    Bug(
        "a cancelled turn goes on",
        "brainq/turn/decide.py",
        "if view.cancel:",
        "if view.cancel and view.awaits == 'coordinator':",
        DECIDE,
    ),
    Bug(
        "the deadline's own instant is not past it",
        "brainq/turn/decide.py",
        "if view.remaining_ms <= 0:",
        "if view.remaining_ms < 0:",
        DECIDE,
    ),
    Bug(
        "a coordinator acts while others are to",
        "brainq/turn/decide.py",
        'if view.awaits != "coordinator":',
        "if view.awaits == 'finalizer':",
        DECIDE,
    ),
    Bug(
        "lost attempts never end a turn",
        "brainq/turn/decide.py",
        "if view.lost_attempts >= MOST_LOST:",
        "if view.lost_attempts < 0:",
        DECIDE,
    ),
    Bug(
        "one lost attempt too many",
        "brainq/turn/decide.py",
        "if view.lost_attempts >= MOST_LOST:",
        "if view.lost_attempts > MOST_LOST:",
        DECIDE,
    ),
    Bug(
        "a step more than the limit",
        "brainq/turn/decide.py",
        "if next_step > view.steps_max:",
        "if next_step > view.steps_max + 1:",
        DECIDE,
    ),
    Bug(
        "a compaction is compacted for ever",
        "brainq/turn/decide.py",
        "return COMPACTED if view.compacted else",
        "return COMPACTED if False else",
        DECIDE,
    ),
    Bug(
        "failures of other steps are counted",
        "brainq/contracts/view.py",
        'if message.role == "tool" and message.step == self.step',
        'if message.role == "tool"',
        DECIDE,
    ),
    Bug(
        "the price is not reserved before a step",
        "brainq/turn/attempts.py",
        "estimate_usd = self._price(provider.name, model, asking.worst)",
        "estimate_usd = None",
        RESERVED,
    ),
    Bug(
        "the reply's worst case is not reserved",
        "brainq/turn/think.py",
        "output_tokens=limits.max_output_tokens or 0)",
        "output_tokens=0)",
        RESERVED,
    ),
    Bug(
        "the limit of tokens counts input alone",
        "brainq/state/lua/lib/budget.lua",
        "tonumber(held[2] or 0) + tonumber(held[3] or 0) + tokens > tokens_max",
        "tonumber(held[2] or 0) + tokens > tokens_max",
        RESERVED,
    ),
    Bug(
        "an endless stream of a user's own provider is not cut",
        "brainq/providers/watched.py",
        "    return _read_apart(provider, request)",
        "    return provider.generate_stream(request)",
        ("tests/integration/providers/test_stalls.py::test_an_endless_foreign_stream_is_cut",),
    ),
    Bug(
        "a stream that says nothing is waited for until the deadline",
        "brainq/providers/pace.py",
        "return left_s if self._first is None else min(left_s, self._first.remaining_s())",
        "return left_s",
        ("tests/unit/providers/test_pace.py",),
    ),
    Bug(
        "a stalled stream ends the turn instead of being asked for again",
        "brainq/turn/attempts.py",
        'BEGUN_AGAIN = frozenset({"stream", "stalled"})',
        'BEGUN_AGAIN = frozenset({"stream"})',
        ("tests/integration/providers/test_stalls.py::test_a_turn_asks_again",),
    ),
    Bug(
        "neighbours of one role are two messages",
        "brainq/providers/chat_roles.py",
        "    said = _merged(said)\n",
        "",
        ("tests/unit/providers/test_chat_roles.py",),
    ),
    Bug(
        "a user's message stands right behind a tool's",
        "brainq/providers/chat_roles.py",
        'if roles != "all":',
        "if False:",
        ("tests/unit/providers/test_chat_roles.py",),
    ),
)
