"""The one place that decides how the events of a model's reply become its calls.

Each wire translates its events to `CallPart`. A part belongs to the call with its call id, or else to the one with its
item id, or else to the one at its position. Two calls with one id are one call. If there is a final message, it
decides. Nothing is guessed: `require_clear` refuses a reply whose parts could form different calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from brainq.adapters.models.wire import calls_wire, read_call
from brainq.contracts.message import Reasoning, ToolCall
from brainq.contracts.model import FinishKind, ModelReply, TokenUsage
from brainq.errors import ProviderError
from brainq.runtime.text.argument_text import read_argument_text
from brainq.runtime.text.surrogates import clean_json

Key = tuple[str, str | int]
REMEDY = "if this service does it again, request one call at a time (parallel_tool_calls=False)"


def cut_reply(why: str) -> ProviderError:
    """Return the error of an attempt whose reply cannot be used. The attempt is charged and repeated."""
    return ProviderError(f"the reply cannot be used: {why}", kind="stream", retryable=True)


def begun_again() -> ProviderError:
    """Return the error of a stream in which a second reply begins before the first one has ended."""
    return cut_reply("a second reply began in the same stream, as if a proxy had repeated the request")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPart:
    """The facts of one event about a call. A field is empty, or None, if the event does not contain it.

    call_id: the id that the call's result will name.
    item_id: the id of the item or block that holds the call.
    index: the number that the service gives the call.
    arguments: JSON text, or a piece of it.
    extra: keys of the call that are not known here.
    """

    call_id: str = ""
    item_id: str = ""
    index: int | None = None
    name: str = ""
    arguments: str = ""
    extra: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def keys(self) -> tuple[Key, ...]:
        """The ids under which the call may be known, the strongest first.

        Some services use a call's id as its item's.
        """
        found = (("id", self.call_id), ("item", self.item_id), ("id", self.item_id))
        return tuple(key for key in found if key[1])


def argument_piece(value: object) -> str:
    """Return arguments, or a piece of them, as text. Some services send an object instead of JSON text."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def unknown_keys(given: Mapping[str, Any], known: Set[str]) -> dict[str, Any]:
    """Return the keys of a call that are not known here, with their values, to be sent back."""
    return {key: value for key, value in given.items() if key not in known and value is not None}


def position(value: object) -> int | None:
    """Return the number that the service gives a call, or None if it gives none."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


@dataclass(eq=False, slots=True)
class _Call:
    """The known facts of one call.

    whole: its arguments, if an event contained all of them.
    done_as: its position among the calls whose arguments came whole.
    has_own_id: whether its first part had its id.
    is_ended: whether the service has marked its end.
    is_doubted: whether a part was assigned to it, or to another call, on weak grounds. Only whole arguments settle the
        doubt.
    """

    call_id: str = ""
    item_id: str = ""
    index: int | None = None
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    whole: str | None = None
    done_as: int | None = None
    has_own_id: bool = False
    is_ended: bool = False
    is_doubted: bool = False
    extra: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def text(self) -> str:
        joined = "".join(self.pieces)
        return joined if self.whole is None or (_says_nothing(self.whole) and joined.strip()) else self.whole

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are a JSON object, and not merely absent."""
        return bool(self.text.strip()) and _read(self.text) is not None

    def learn(self, part: CallPart) -> None:
        self.call_id = self.call_id or part.call_id
        self.item_id = self.item_id or part.item_id
        self.name = self.name or part.name
        self.extra.update(part.extra)

    def ended_before(self, part: CallPart) -> bool:
        """Return whether a part without an id begins another call: it has a name, and this call is whole. If this call
        is not whole, the name may be the rest of its own."""
        return bool(part.name and self.name) and self.is_whole


class CallStream:
    """The calls of one reply, which are put together part by part."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._known: dict[Key, _Call] = {}
        self._done = 0
        self._has_strays = False  # pieces with ids that no event announced
        self._problem = ""

    def __len__(self) -> int:
        return len(self._calls)

    def announce(self, part: CallPart) -> bool:
        """Begin a call, even at an index that is in use. Returns False if the id, or the call, was announced before."""
        known, before = self._by_id(part), self._at_position(part)
        named = known or before
        if named is not None and not named.name and (named is known or named.index == part.index is not None):
            self._learn(named, part)  # The arguments of this call came first.
            return True
        if known is not None and known.whole is not None:
            return False
        if before is not None and before is not known and not (before.is_ended or before.is_whole):
            before.is_doubted = True  # This part ends it before it is complete.
        call = self._begin(part)
        call.pieces.append(part.arguments)
        return known is None

    def add_piece(self, part: CallPart) -> None:
        """Add a piece of arguments to its call."""
        call = self._find(part)
        if call is not None or part.arguments.strip():
            (call or self._begin(part)).pieces.append(part.arguments)

    def add_whole(self, part: CallPart) -> None:
        """Add the whole arguments of a call, unless pieces of them have come."""
        call = self._find(part)
        if call is None or not "".join(call.pieces).strip():
            self.add_piece(part)

    def end(self, part: CallPart) -> None:
        """Mark a call as ended: no piece of it follows."""
        call = self._find(part)
        if call is not None:
            call.is_ended = True

    def continue_or_begin(self, part: CallPart) -> bool:
        """Add a part whose event does not say whether it begins a call. Returns whether a call with its own id began at
        the position of another call."""
        call, before = self._by_id(part), self._at_position(part)
        if call is None and before is not None and self._continues(part, before):
            call = before
        began = call is None
        call = self._begin(part) if call is None else self._learn(call, part)
        # A repeated name without arguments may be a second call, or the end of the first.
        call.is_doubted |= began and before is not None and not part.call_id and part.name == before.name
        if part.name and call.name != part.name:
            self._note(f"a call was first named {call.name!r}, and then {part.name!r}")
        call.pieces.append(part.arguments)
        return began and before is not None and bool(before.call_id and part.call_id) and part.index is not None

    def finish(self, part: CallPart) -> None:
        """Add a call that one event contains in full."""
        call = self._by_id(part) or self._unfinished(part)
        if call is not None and part.name and call.name not in ("", part.name):
            self._note(f"a call has two names, {call.name!r} and {part.name!r}")
        if call is not None and call.whole is not None and not _is_same(call.text, part.arguments):
            self._note(f"two calls have the id {part.call_id or part.item_id!r}, with different content")
        call = self._begin(part) if call is None else self._learn(call, part)
        call.whole = part.arguments if call.whole is None or _says_nothing(call.whole) else call.whole
        if call.done_as is None:
            call.done_as, self._done = self._done, self._done + 1

    def conclude(self, parts: Iterable[CallPart]) -> None:
        """Use the calls of the final message, which must contain each call that came before."""
        final = CallStream()
        for part in parts:
            final.finish(part)
        missing = [call for call in self._merged() if not self._is_in(final, call)]
        if any(call.call_id or call.whole is not None for call in missing) or len(self._calls) > len(final):
            said = [_read(call.text) for call in final._calls]
            if any(_read(call.text) not in said for call in missing):
                final._note("a call that came before is not in the final message")
        self._calls, self._known, self._done, self._problem = final._calls, final._known, final._done, final._problem

    def _is_in(self, final: CallStream, call: _Call) -> bool:
        """Return whether `final` has the call. Its earlier arguments and keys are added there if they are missing."""
        keys = [key for key, known in self._known.items() if known is call and key[0] != "index"]
        same = next((final._known[key] for key in keys if key in final._known), None)
        if same is None:
            return False
        same.extra = call.extra | same.extra
        if _says_nothing(same.text) and not _says_nothing(call.text):
            same.whole = call.text
        return True

    def require_clear(self, finish: str) -> None:
        """Raise ProviderError if the calls of a reply that ended with `finish` are not clear."""
        if FinishKind.of(finish) is not FinishKind.WHOLE:
            return
        self._calls = self._merged()
        self._problem = self._problem or self._doubt()
        if self._problem:
            raise cut_reply(f"{self._problem}; {REMEDY}")

    def reply(
        self,
        wire: str,
        finish: str,
        *,
        text: str,
        usage: TokenUsage,
        model: object,
        reasoning: Iterable[Reasoning] = (),
        unnamed: str = "call_",
    ) -> ModelReply:
        """Return the whole reply with these calls. Raises ProviderError if the calls are not clear."""
        self.require_clear(finish)
        return ModelReply(
            text=text,
            calls=self.calls(unnamed),
            usage=usage,
            model=str(model or ""),
            finish_reason=finish,
            reasoning=(*reasoning, *self.extras(wire)),
        )

    def repeats_from(self, count: int) -> bool:
        """Return whether a call after the first `count` repeats one of the first."""
        said = [(call.name, _read(call.text)) for call in self._calls]
        return any(later in said[:count] for later in said[count:])

    @property
    def are_whole(self) -> bool:
        """Whether each call has a name, and a JSON object as its arguments."""
        return all(call.name and call.is_whole for call in self._merged())

    @property
    def are_ended(self) -> bool:
        """Whether each call has a name, and either whole arguments or a marked end."""
        return all(call.name and (call.is_ended or call.is_whole) for call in self._merged())

    def calls(self, unnamed: str = "call_") -> tuple[ToolCall, ...]:
        """Return the calls. A call without an id gets `unnamed` and its position."""
        return tuple(
            read_call(call.call_id or call.item_id or f"{unnamed}{index}", call.name, call.text)
            for index, call in enumerate(self._in_order())
        )

    def extras(self, wire: str) -> tuple[Reasoning, ...]:
        """Return the unknown keys of calls, as reasoning that `wire` sends back."""
        return tuple(
            Reasoning(wire=calls_wire(wire), block=clean_json(call.extra), before=index)
            for index, call in enumerate(self._in_order())
            if call.extra
        )

    def _in_order(self) -> list[_Call]:
        return sorted(self._calls, key=lambda call: len(self._calls) if call.done_as is None else call.done_as)

    def _begin(self, part: CallPart) -> _Call:
        call = _Call(index=part.index, has_own_id=bool(part.call_id))
        self._calls.append(call)
        self._learn(call, part)
        if part.index is not None:
            self._known["index", part.index] = call
        return call

    def _learn(self, call: _Call, part: CallPart) -> _Call:
        call.learn(part)
        for key in part.keys[:2]:
            self._known[key] = call
        return call

    def _by_id(self, part: CallPart) -> _Call | None:
        for key in part.keys:
            call = self._known.get(key)
            if call is not None and (key == ("id", part.call_id) or not (part.call_id and call.call_id)):
                return call
        return None

    def _at_position(self, part: CallPart) -> _Call | None:
        if part.index is not None:
            return self._known.get(("index", part.index))
        return self._calls[-1] if self._calls else None

    def _find(self, part: CallPart) -> _Call | None:
        """Return the call that a piece belongs to. A position is stronger than an id that was not announced."""
        call = self._by_id(part)
        if call is not None:
            return call
        call = self._at_position(part)
        self._has_strays |= call is not None and bool((part.call_id or part.item_id) and (call.call_id or call.item_id))
        return call

    def _continues(self, part: CallPart, before: _Call) -> bool:
        """Return whether a part without a known id continues the call at its position."""
        if part.call_id and before.call_id:
            if not part.name:
                return True  # some services give each piece its own id
            before.is_doubted |= not before.is_whole and (bool(before.text.strip()) or before.name == part.name)
            return False
        if not before.ended_before(part):
            if part.name and before.name and not (before.has_own_id or before.text.strip()):
                self._note(
                    f"{part.name!r} was named twice without an id, so it is unclear whether these are one call or two"
                )
            return True
        before.is_doubted |= not before.is_whole and bool(before.text.strip())
        return False

    def _unfinished(self, part: CallPart) -> _Call | None:
        """Return the first call at the position of a finished call that could be the same call."""
        for call in self._calls:
            is_other = (part.call_id and call.call_id) or (part.item_id and call.item_id)
            is_here = part.index is None or part.index == call.index
            if call.whole is None and is_here and not is_other and call.name in ("", part.name):
                return call
        return None

    def _merged(self) -> list[_Call]:
        kept: dict[str, _Call] = {}
        made = list[_Call]()
        for call in self._in_order():
            same = kept.get(call.call_id) if call.call_id else None
            if same is None:
                made.append(call)
                kept[call.call_id] = call
                continue
            if call.name not in ("", same.name) or not _is_same(same.text, call.text):
                self._note(f"two calls have the id {call.call_id!r}, with different content")
            same.is_ended |= call.is_ended
            if _says_nothing(same.text) and not _says_nothing(call.text):
                same.whole = call.text
        return made

    def _doubt(self) -> str:
        """Return why the calls are not clear, or "" if they are."""
        said = [_read(call.text) for call in self._calls if call.whole is not None]
        unnamed = [call for call in self._calls if not call.name and call.whole is None]
        self._calls = [call for call in self._calls if call not in unnamed or _read(call.text) not in said]
        if len(self._calls) > 1 and any(not call.name for call in self._calls):
            return "arguments came for a call without a name"
        for call in self._calls:
            is_doubted = (call.is_doubted or self._has_strays) and not (call.is_ended or call.is_whole)
            if call.whole is None and (self._done or is_doubted):
                return f"the call {call.call_id or call.name!r} was begun but not ended"
        return ""

    def _note(self, problem: str) -> None:
        self._problem = self._problem or problem


def _read(text: str) -> dict[str, Any] | None:
    try:
        value = read_argument_text(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType]


def _says_nothing(text: str) -> bool:
    return _read(text) == {}


def _is_same(one: str, other: str) -> bool:
    """Return whether two texts of arguments can belong to one call. `{}` may precede the real arguments."""
    if _says_nothing(one) or _says_nothing(other):
        return True
    return one == other or (
        _read(one) is not None and json.dumps(_read(one), sort_keys=True) == json.dumps(_read(other), sort_keys=True)
    )
