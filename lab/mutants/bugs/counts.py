"""Bugs of counts and sizes: what services report that cannot be, requests whose worker is gone, replies without end."""

from __future__ import annotations

from lab.mutants.bug import Bug

COUNTS = ("tests/unit/engine/models/test_counts.py",)
BILL = ("tests/unit/engine/models/test_bill.py",)
SIZES = ("tests/unit/engine/models/test_reply_size.py",)
ENDLESS = ("tests/integration/engine/test_endless_replies.py",)
USAGE, ESTIMATE = "brainq/contracts/usage.py", "brainq/runtime/text/estimate.py"
SIZE, ANSWER = "brainq/engine/models/asking/reply_size.py", "brainq/adapters/models/open_answer.py"

BUGS = (
    Bug("a negative count is taken", USAGE, "not 0 <= value <= most:", "not value <= most:", COUNTS),
    Bug("an absurd count is taken", USAGE, "not 0 <= value <= most:", "not 0 <= value:", COUNTS),
    Bug("true counts as one token", USAGE, "if isinstance(value, bool) or not", "if not", COUNTS),
    Bug("a fraction is rounded down", USAGE, "count = math.ceil(value)", "count = math.floor(value)", COUNTS),
    Bug("a count that was rounded is not marked", USAGE, "return count, count == value", "return count, True", COUNTS),
    Bug(
        "cached tokens beside the prompt are left out",
        USAGE,
        "most = min(MAX_COUNT, usage.input_tokens + cached)",
        "most = cached",
        COUNTS,
    ),
    Bug(
        "thinking that only the total shows is free",
        USAGE,
        "if usage.input_tokens and rest > 0:",
        "if usage.input_tokens and rest == beside > 0:",
        COUNTS,
    ),
    Bug(
        "an output that cannot be is estimated below the worst case",
        ESTIMATE,
        "written = max(estimate.output_tokens, request.max_output_tokens or 0)",
        "written = estimate.output_tokens",
        COUNTS,
    ),
    Bug(
        "one token for a long reply is believed",
        ESTIMATE,
        "return written * MAX_CHARS_PER_TOKEN >= shown and not (usage.estimated and written == 0)",
        "return not (usage.estimated and written == 0)",
        COUNTS,
    ),
    Bug(
        "an input that cannot be is free",
        ESTIMATE,
        "sent, cached = estimate.input_tokens, 0",
        "sent, cached = 0, 0",
        COUNTS,
    ),
    Bug(
        "the counts of an own provider are taken as they come",
        "brainq/engine/models/asking/permits.py",
        "reply = with_usage(chunk.reply, request)",
        "reply = chunk.reply",
        COUNTS,
    ),
    Bug(
        "cached Anthropic tokens that are text cost a reply",
        "brainq/adapters/models/anthropic/wire.py",
        "sent=sum(counts),",
        'sent=counts[0] + (usage.get("cache_read_input_tokens") or 0) + counts[2],',
        COUNTS,
    ),
    Bug(
        "a number of many digits costs a reply",
        ANSWER,
        'return json.loads(text, parse_int=lambda digits: int(digits) if len(digits) < 1000 else float("inf"))',
        "raise",
        COUNTS,
    ),
    Bug(
        "a negative count of an earlier build is taken back from the budget",
        "brainq/adapters/redis/lua/lib/budget.lua",
        "math.max(0, output))",
        "output)",
        ("tests/lua/test_money.py",),
    ),
    Bug(
        "an open request is reported as far as it was read",
        "brainq/engine/models/asking/bill.py",
        "self._lost_spend(request, request.worst_usage())",
        "self._lost_spend(request)",
        BILL,
    ),
    Bug(
        "a request that has ended keeps its worst case",
        "brainq/engine/models/asking/bill.py",
        "if self.is_over or usage.output_tokens >= self.max_output:",
        "if usage.output_tokens >= self.max_output:",
        BILL,
    ),
    Bug(
        "a request that was answered nothing is charged without an output",
        "brainq/engine/models/asking/bill.py",
        "0 if self.has_begun or self._written.tokens else self.max_output",
        "0",
        BILL,
    ),
    Bug(
        "an attempt that cost nothing is charged once its worker dies",
        "brainq/engine/models/asking/bill.py",
        "self.unsent = None",
        "pass",
        BILL,
    ),
    Bug(
        "an attempt whose worker dies at once is charged without its output",
        "brainq/engine/turn/step.py",
        "output_tokens=most_output, estimated=True), begin.max_usd",
        "estimated=True), begin.max_usd",
        ("tests/integration/engine/test_money_of_cut_streams.py",),
    ),
    Bug("characters are bounded, not bytes", ESTIMATE, "self._elsewhere += len(", "self._elsewhere += 0 * len(", SIZES),
    Bug(
        "arguments without end are read",
        ESTIMATE,
        "return self._plain + self._elsewhere + self._json\n",
        "return self._plain + self._elsewhere\n",
        SIZES,
    ),
    Bug("a line without end is read", ANSWER, "size += len(piece)\n", "size = len(piece)\n", SIZES),
    Bug("an event of lines without end is read", ANSWER, "size += len(line)\n", "size = len(line)\n", SIZES),
    Bug("an answer that is not streamed has no bound", SIZE, "if size > most:", "if size < 0:", SIZES),
    Bug(
        "a reply that comes whole is not measured",
        "brainq/engine/models/asking/bill.py",
        "if reply_bytes(reply) > self.allowance.reply_bytes:",
        "if False:",
        SIZES,
    ),
    Bug("a reply that grew too large is asked for again", SIZE, "retryable=False,", "retryable=True,", SIZES),
    Bug(
        "a reply that was too large to read is free",
        "brainq/engine/models/asking/permits.py",
        "self.entry.add_unread()",
        "pass",
        ENDLESS,
    ),
    Bug(
        "a turn's replies and results are not bounded together",
        "brainq/engine/turn/step.py",
        "messages_bytes(view.own_messages) < most:",
        "messages_bytes(view.own_messages) < 0 or True:",
        SIZES,
    ),
    Bug(
        "the setting of the largest reply is not heeded",
        "brainq/app/wiring/machines.py",
        "            max_reply_bytes=wiring.settings.max_reply_bytes,\n",
        "",
        ENDLESS,
    ),
    Bug(
        "a budget for a model without a price says nothing",
        "brainq/client/spending.py",
        "if line.unpriced_calls and line.model}",
        "if line.unpriced_calls < 0}",
        ("tests/integration/people/test_budgets.py::test_setting_a_budget_names_the_models_that_it_does_not_hold",),
    ),
)
