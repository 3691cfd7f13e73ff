"""The gates in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from brainq.contracts.call import ToolDenied
from brainq.contracts.callbacks import Deny, PreToolHook, PreToolUse
from brainq.contracts.message import ToolCall
from brainq.contracts.status import Effect
from brainq.contracts.tool import ToolSpec
from brainq.engine.gates.canonical import fingerprint
from brainq.engine.gates.chain import Allowed, Denied, GateChain, ReplayControl, Verdict
from brainq.errors import InvalidInput
from tests.support.hashes import args_hash

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TOOLS = {
    "look": ToolSpec(name="look", parameters=SCHEMA, effect=Effect.READ_ONLY),
    "pay": ToolSpec(name="pay", parameters=SCHEMA, effect=Effect.DESTRUCTIVE, deny_repeats=True),
    "keyed": ToolSpec(name="keyed", parameters=SCHEMA, effect=Effect.NETWORK, idempotent=True),
    "step_up": ToolSpec(name="step_up", parameters=SCHEMA, effect=Effect.LOCAL_WRITE),
    "page": ToolSpec(name="page", parameters=SCHEMA, effect=Effect.READ_ONLY, resources=("page:{n}",)),
}


def call(name: str, arguments: dict[str, Any] | str, index: int = 0) -> ToolCall:
    return ToolCall(id=f"c1-{index}", name=name, arguments=arguments)


def judge(
    *calls: ToolCall,
    succeeded: dict[str, int] | None = None,
    epoch: int = 0,
    blocked: frozenset[str] = frozenset(),
    hook: PreToolHook | None = None,
    keys_of: Callable[[ToolSpec, dict[str, Any], str], tuple[str, ...]] | None = None,
) -> list[Verdict]:
    gates = GateChain("turn", "s", TOOLS, ReplayControl(succeeded or {}, epoch), set(blocked), hook, keys_of)
    return [gates.judge(call) for call in calls]


def reasons(verdicts: list[Verdict]) -> list[str]:
    return ["allowed" if isinstance(verdict, Allowed) else verdict.outcome.reason for verdict in verdicts]


def refuse(use: PreToolUse) -> Deny:
    return Deny("not today")


def test_a_good_call_is_allowed_with_its_hashes() -> None:
    asked = call("look", {"n": 1})
    hashes = (args_hash({"n": 1}), fingerprint("look", {"n": 1}))
    assert judge(asked) == [Allowed(asked, TOOLS["look"], {"n": 1}, *hashes)]


def test_mended_arguments_are_final() -> None:
    [verdict] = judge(call("look", '{"n": "1"}'))

    assert isinstance(verdict, Allowed)
    assert verdict.arguments == {"n": 1}
    assert verdict.repairs == 1
    assert verdict.fingerprint == fingerprint("look", {"n": 1})


def test_an_unknown_tool_is_denied_with_the_names_of_the_known() -> None:
    [verdict] = judge(call("lok", {"n": 1}))

    assert isinstance(verdict, Denied)
    assert verdict.outcome == ToolDenied(
        reason="validation", message="There is no tool named lok; the tools are keyed, look, page, pay, step_up."
    )


@pytest.mark.parametrize(
    ("recorded_at", "epoch", "reason"), [(0, 0, "duplicate"), (0, 1, "allowed"), (3, 3, "duplicate"), (2, 3, "allowed")]
)
def test_a_repeat_is_denied_until_another_write(recorded_at: int, epoch: int, reason: str) -> None:
    for name in ("look", "pay", "keyed"):
        succeeded = {fingerprint(name, {"n": 1}): recorded_at}
        assert reasons(judge(call(name, {"n": 1.0}), succeeded=succeeded, epoch=epoch)) == [reason]
        assert reasons(judge(call(name, {"n": 2}), succeeded=succeeded, epoch=epoch)) == ["allowed"]


def test_the_same_arguments_to_another_tool_are_no_repeat() -> None:
    assert reasons(judge(call("pay", {"n": 1}), succeeded={fingerprint("look", {"n": 1}): 0})) == ["allowed"]


@pytest.mark.parametrize("arguments", [{"n": "1"}, '{"n": 1}', '{"n": "1"}'])
def test_a_repeat_is_seen_through_a_repair(arguments: Any) -> None:
    succeeded = {fingerprint("pay", {"n": 1}): 0}
    assert reasons(judge(call("pay", arguments), succeeded=succeeded)) == ["duplicate"]


def test_a_repeat_is_seen_through_the_hooks_rewriting() -> None:
    succeeded = {fingerprint("pay", {"n": 1}): 0}
    assert reasons(judge(call("pay", {"n": 9}), succeeded=succeeded, hook=lambda use: {"n": 1})) == ["duplicate"]


def test_the_earlier_gate_answers() -> None:
    bad = call("pay", {"n": "x"})
    twice = {fingerprint("pay", {"n": "x"}): 0}
    blocked = frozenset({"pay"})

    assert reasons(judge(bad, succeeded=twice, blocked=blocked, hook=refuse)) == ["duplicate"]
    assert reasons(judge(bad, blocked=blocked, hook=refuse)) == ["blocked"]
    assert reasons(judge(bad, hook=refuse)) == ["pre_hook"]
    assert reasons(judge(bad)) == ["validation"]


def test_the_hook_is_told_of_the_call_and_may_rewrite_it() -> None:
    seen: list[PreToolUse] = []

    def hook(use: PreToolUse) -> dict[str, Any]:
        seen.append(use)
        return {"n": "7"}

    [verdict] = judge(call("look", {"n": 1}), hook=hook)

    assert seen == [PreToolUse("turn", "s", call("look", {"n": 1}), TOOLS["look"])]
    assert isinstance(verdict, Allowed)
    assert verdict.arguments == {"n": 7}


def test_what_the_hook_rewrites_is_validated() -> None:
    assert reasons(judge(call("look", {"n": 1}), hook=lambda use: {})) == ["validation"]


def raising(use: PreToolUse) -> None:
    raise RuntimeError("secret detail")


def answering_nonsense(use: PreToolUse) -> Any:
    return True


@pytest.mark.parametrize(("hook", "word"), [(raising, "RuntimeError"), (answering_nonsense, "bool")])
def test_a_broken_hook_denies(hook: PreToolHook, word: str) -> None:
    [verdict] = judge(call("look", {"n": 1}), hook=hook)

    assert isinstance(verdict, Denied)
    assert verdict.outcome.reason == "pre_hook"
    assert word in verdict.outcome.message
    assert "secret" not in verdict.outcome.message


def test_a_tool_blocked_by_the_hook_is_blocked_for_the_calls_after_it() -> None:
    def hook(use: PreToolUse) -> Deny | None:
        return Deny("no", block_tool=True) if use.call.arguments == {"n": 2} else None

    verdicts = judge(*[call("pay", {"n": n}, n) for n in (1, 2, 3)], call("look", {"n": 3}, 4), hook=hook)

    assert reasons(verdicts) == ["allowed", "pre_hook", "blocked", "allowed"]
    assert [getattr(verdict, "block_tool", None) for verdict in verdicts] == [None, True, False, None]


def test_keys_come_with_the_verdict_and_their_absence_denies() -> None:
    def keys_of(spec: ToolSpec, arguments: dict[str, Any], session_id: str) -> tuple[str, ...]:
        if arguments["n"] == 2:
            raise InvalidInput("path", "tool 'page' needs it")
        return (f"{spec.name}:{arguments['n']} {session_id}",)

    calls = call("page", {"n": 1}), call("page", {"n": 2}), call("look", {"n": 1}), call("step_up", {"n": 1})
    good, bad, *others = judge(*calls, keys_of=keys_of)

    assert isinstance(good, Allowed)
    assert good.keys == ("page:1 s",)
    assert [isinstance(other, Allowed) and other.keys for other in others] == [(), ("step_up:1 s",)]
    assert isinstance(bad, Denied)
    assert bad.outcome.reason == "validation"
    assert "path" in bad.outcome.message


def test_a_repeat_is_denied_only_where_it_can_bring_nothing_new() -> None:
    names = ("look", "pay", "keyed", "step_up")
    known = {fingerprint(name, {"n": 1}): 0 for name in names}
    verdicts = judge(*(call(name, {"n": 1}) for name in names), succeeded=known)
    assert reasons(verdicts) == ["duplicate", "duplicate", "duplicate", "allowed"]
    again = [verdict for verdict in judge(*(call(name, {"n": 2}) for name in names)) if isinstance(verdict, Allowed)]
    # What is not guarded leaves nothing by which a repeat would be known, in the coordinator or in Redis.
    assert [bool(verdict.fingerprint) for verdict in again] == [True, True, True, False]
