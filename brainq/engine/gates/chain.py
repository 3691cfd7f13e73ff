"""The chain of gates for all calls of one model reply: repeats, blocked tools, the brain's hook, arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from brainq.contracts.call import ToolDenied
from brainq.contracts.callbacks import Deny, PreToolHook, PreToolUse
from brainq.contracts.message import ToolCall
from brainq.contracts.tool import ToolSpec
from brainq.engine.gates.arguments import ReadArguments, ToolArgValidator, read_arguments
from brainq.errors import InvalidInput
from brainq.runtime.observe.logs import logger
from brainq.runtime.observe.tracebacks import where_raised
from brainq.runtime.text.failures import failure_name

log = logger("brainq.gates")
_REPEAT_MESSAGE = (
    "Not run: this exact call already brought its result in this turn, and no tool has changed anything since. "
    "Use that result, or call with other arguments."
)
MAX_MESSAGE_CHARS = 2_000
KeysOf = Callable[[ToolSpec, dict[str, Any], str], tuple[str, ...]]
"""Returns the lanes or resource keys of a call, from its tool, its arguments and the session's id."""
_MAX_NAMES_SHOWN = 50
_SHARED_VALIDATOR = ToolArgValidator()


@dataclass(frozen=True, slots=True)
class ReplayControl:
    """The gate that denies a call that can bring nothing new.

    succeeded     fingerprint -> the write epoch after that call succeeded
    write_epoch   how many writes of this turn have taken effect so far

    A write raises the epoch and is recorded with the new one. The same write right after it is a duplicate, but any
    earlier read may be repeated, because the world may have changed.
    """

    succeeded: Mapping[str, int]
    write_epoch: int

    def judge(self, fingerprint: str) -> ToolDenied | None:
        """Return a denial, or None if the call may continue."""
        if self.succeeded.get(fingerprint) != self.write_epoch:
            return None
        return ToolDenied(reason="duplicate", message=_REPEAT_MESSAGE)


def _blocked_denial(tool: str) -> ToolDenied:
    """Return the denial for a tool that was blocked by itself (`RunContext.block_tool`) or by the pre-hook
    (`Deny(block_tool=True)`)."""
    return ToolDenied(
        reason="blocked", message=f"The tool {tool} is blocked for the rest of this turn. Go on without it."
    )


@dataclass(frozen=True, slots=True)
class HookVerdict:
    """The answer of the hook: `denied`, or new `arguments`, or neither, which lets the call continue."""

    denied: ToolDenied | None = None
    block_tool: bool = False
    arguments: dict[str, Any] | None = None


_GO_ON = HookVerdict()


def judge_by_hook(hook: PreToolHook | None, use: PreToolUse) -> HookVerdict:
    """Return the answer of the hook. A hook that raises, or returns anything else, denies the call."""
    if hook is None:
        return _GO_ON
    try:
        answer: object = hook(use)
    except Exception as error:
        return _hook_denial(
            f"The check before this tool failed ({failure_name(error)}), so the call was not made. "
            "Do not repeat it in this turn."
        )
    match answer:
        case None:
            return _GO_ON
        case Deny():
            return _hook_denial(answer.message, block_tool=answer.block_tool)
        case dict():
            return HookVerdict(arguments=answer)  # pyright: ignore[reportUnknownArgumentType]
        case _:
            return _hook_denial(
                f"The check before this tool returned a {type(answer).__name__}, not None, Deny or a dict, "
                "so the call was not made."
            )


def _hook_denial(message: str, *, block_tool: bool = False) -> HookVerdict:
    return HookVerdict(ToolDenied(reason="pre_hook", message=message[:MAX_MESSAGE_CHARS]), block_tool)


@dataclass(frozen=True, slots=True)
class Allowed:
    """A call that may start. Its `arguments`, also in `call`, are final: rewritten by the hook, repaired and valid.

    fingerprint   the hash by which a repeat is recognised; empty if repeats are allowed
    keys          the lanes or resource keys that `keys_of` made of the arguments
    """

    call: ToolCall
    spec: ToolSpec
    arguments: dict[str, Any]
    args_hash: str
    fingerprint: str
    repairs: int = 0
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Denied:
    """A call that must not start. `block_tool` means that the pre-hook blocked its tool for the rest of the turn."""

    call: ToolCall
    outcome: ToolDenied
    block_tool: bool = False


Verdict = Allowed | Denied


@dataclass(slots=True)
class GateChain:
    """The gates for the calls of one model reply, which are judged one after another: a tool that the hook blocks at
    one call is blocked at the next.

    tools     all tools of the turn, by name
    blocked   the tools that are blocked so far
    hook          the brain's pre-hook
    keys_of   fills in the tool's resource templates, and is not called for a read without any; its InvalidInput denies
              the call
    """

    turn_id: str
    session_id: str
    tools: Mapping[str, ToolSpec]
    replay: ReplayControl
    blocked: set[str]
    hook: PreToolHook | None = None
    keys_of: KeysOf | None = None

    def judge(self, call: ToolCall) -> Verdict:
        """Judge a call by all gates, in their order."""
        spec = self.tools.get(call.name)
        if spec is None:
            return Denied(call, _unknown_tool(call.name, self.tools))
        read, is_guarded, requested = read_arguments(spec, call.arguments), spec.is_guarded, ""
        replay = self.replay if is_guarded and self.replay.succeeded else None
        if isinstance(read, ReadArguments) and not read.repairs:
            requested = read.fingerprint
            if replay is not None and (denied := replay.judge(requested)):
                return Denied(call, denied)
        if spec.name in self.blocked:
            return Denied(call, _blocked_denial(spec.name))
        if self.hook is not None:
            verdict = judge_by_hook(self.hook, PreToolUse(self.turn_id, self.session_id, call, spec))
            if verdict.denied is not None:
                if verdict.block_tool:
                    self.blocked.add(spec.name)
                return Denied(call, verdict.denied, verdict.block_tool)
            if verdict.arguments is not None:
                read = read_arguments(spec, verdict.arguments)
        try:
            valid = read if isinstance(read, ToolDenied) else _SHARED_VALIDATOR.judge(spec, read)
        except Exception as failure:  # the schema is unusable; the turn continues without the call
            log.error("arguments not checked", failure=failure, turn_id=self.turn_id, tool=spec.name)
            return Denied(call, _unchecked_denial(failure))
        if isinstance(valid, ToolDenied):
            return Denied(call, valid)
        # The hook or a repair may have turned the call into one that already succeeded.
        if replay is not None and valid.fingerprint != requested and (denied := replay.judge(valid.fingerprint)):
            return Denied(call, denied.model_copy(update={"repairs": valid.repairs}))
        try:
            has_keys = not spec.effect.is_read or bool(spec.resources)
            keys = self.keys_of(spec, valid.arguments, self.session_id) if has_keys and self.keys_of else ()
        except InvalidInput as error:
            return Denied(call, ToolDenied(reason="validation", message=f"{error}.", repairs=valid.repairs))
        if valid.arguments is not call.arguments:
            call = call.model_copy(update={"arguments": valid.arguments})
        known_by = valid.fingerprint if is_guarded else ""
        return Allowed(call, spec, valid.arguments, valid.args_hash, known_by, valid.repairs, keys)


def _unchecked_denial(failure: Exception) -> ToolDenied:
    return ToolDenied(
        reason="validation",
        message=f"Not run: the arguments could not be checked ({failure_name(failure)} at {where_raised(failure)}). "
        "This is a fault of the tool; go on without it.",
    )


def _unknown_tool(name: str, tools: Mapping[str, ToolSpec]) -> ToolDenied:
    names = sorted(tools)
    shown = ", ".join(names[:_MAX_NAMES_SHOWN]) + (", ..." if len(names) > _MAX_NAMES_SHOWN else "")
    listed = f"the tools are {shown}" if names else "there are no tools in this turn"
    return ToolDenied(reason="validation", message=f"There is no tool named {name[:100]}; {listed}.")
