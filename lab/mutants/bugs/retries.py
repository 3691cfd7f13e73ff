"""Bugs of requests that come again: retries of OpenAI's clients, and who may give results over their wire."""

from __future__ import annotations

from lab.mutants.bug import Bug

TRY = ("tests/lua/test_request_keys.py", "tests/lua/test_request_keys.py")
TRIES = ("tests/unit/gateway/openai/test_tries.py",)
ERRORS = "tests/integration/gateway/openai/test_errors.py"

BUGS = (
    Bug(
        "a retry is taken for what is open before what was refused or cut",
        "brainq/adapters/redis/lua/request_try.lua",
        "if open ~= (other.state == 'open') then return not open end",
        "if open ~= (other.state == 'open') then return open end",
        TRY,
    ),
    Bug(
        "a retry is taken for what was answered though another is open",
        "brainq/adapters/redis/lua/request_try.lua",
        "if sent ~= other_sent then return other_sent end",
        "if sent ~= other_sent then return sent end",
        TRY,
    ),
    Bug(
        "a retry is taken for one that is as far on",
        "brainq/adapters/redis/lua/request_try.lua",
        "try.number < number and",
        "try.number <= number and",
        TRY,
    ),
    Bug(
        "the end of an old try is noted as that of the new one",
        "brainq/adapters/redis/lua/request_tried.lua",
        "tonumber(at_number) ~= number or is ~= 'open'",
        "is ~= 'open'",
        TRY,
    ),
    Bug(
        "an answer whose client has left counts as sent",
        "brainq/gateway/wires/openai/retries.py",
        "if self._is_gone:",
        "if self._is_gone and not self._is_whole:",
        TRIES,
    ),
    Bug(
        "what the door refuses is not noted",
        "brainq/gateway/wires/openai/retries.py",
        "refusal.kind.status == 429 and",
        "refusal.kind.status == 503 and",
        TRIES,
    ),
    Bug(
        "who may not steer gives results over OpenAI's wire",
        "brainq/gateway/wires/openai/messages.py",
        "    request.require_verb(Verb.STEER)\n",
        "",
        (f"{ERRORS}::test_results_need_the_verb_steer",),
    ),
)
