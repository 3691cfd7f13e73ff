"""Bugs of the calls in a model's stream: which there are, which arguments they have, and whether the reply is whole."""

from __future__ import annotations

from lab.mutants.bug import Bug

STREAM = "brainq/adapters/models/call_stream.py"
CHAT = "brainq/adapters/models/openai/chat_wire.py"
RESPONSES = "brainq/adapters/models/openai/responses_wire.py"
CLAUDE = "brainq/adapters/models/anthropic/wire.py"
TEXT = "brainq/runtime/text/argument_text.py"
CALLS = ("tests/unit/engine/models/test_call_stream.py",)
ARGUMENTS = ("tests/unit/engine/gates/test_arguments.py",)

BUGS = (
    Bug(
        "a call is not known by the id of its item",
        STREAM,
        'found = (("id", self.call_id), ("item", self.item_id), ("id", self.item_id))',
        'found = (("id", self.call_id),)',
        CALLS,
    ),
    Bug(
        "two calls with one id that differ are taken for one",
        STREAM,
        """                self._note(f"two calls have the id {call.call_id!r}, with different content")\n""",
        "                pass\n",
        CALLS,
    ),
    Bug(
        "two calls with one id are two",
        STREAM,
        "same = kept.get(call.call_id) if call.call_id else None",
        "same = None",
        CALLS,
    ),
    Bug(
        "a call that the final message leaves out is lost",
        STREAM,
        """                final._note("a call that came before is not in the final message")\n""",
        "                pass\n",
        CALLS,
    ),
    Bug(
        "empty arguments of the final message win over real ones",
        STREAM,
        "            same.whole = call.text\n        return True",
        "            pass\n        return True",
        CALLS,
    ),
    Bug(
        "a call that was begun and never ended runs",
        STREAM,
        "if call.whole is None and (self._done or is_doubted):",
        "if call.whole is None and is_doubted:",
        CALLS,
    ),
    Bug(
        "arguments of no call leave a call without any",
        STREAM,
        "if len(self._calls) > 1 and any(not call.name for call in self._calls):",
        "if False:",
        CALLS,
    ),
    Bug(
        "a block that begins in place of an open one leaves half a call",
        STREAM,
        "            before.is_doubted = True  # This part ends it before it is complete.\n",
        "            pass\n",
        CALLS,
    ),
    Bug(
        "a piece with an id of its own is a call",
        STREAM,
        "            if not part.name:\n                return True",
        "            if not part.name:\n                return False",
        CALLS,
    ),
    Bug(
        "a second message within Anthropic's stream goes on with the first",
        CLAUDE,
        "        self._begin_reply(message, has_output=bool(self._open))\n",
        "",
        CALLS,
    ),
    Bug(
        "arguments at an index of no call are left out",
        CLAUDE,
        'if kind in ("", "text") and piece.strip():',
        "if False:",
        CALLS,
    ),
    Bug(
        "a second response within a stream goes on with the first",
        "brainq/adapters/models/stream_reader.py",
        "        if self._reply_id is not None and not is_same:\n            raise begun_again()\n",
        "",
        CALLS,
    ),
    Bug(
        "chunks with ids of their own are replies of their own",
        CHAT,
        "        self._ids_differ |= pending or (earlier == 1 and had_output and not has_role)\n",
        "",
        CALLS,
    ),
    Bug(
        "a second reply within a chat stream goes on with the first",
        CHAT,
        "        return earlier > 1 and has_role\n",
        "        return False\n",
        CALLS,
    ),
    Bug(
        "a stream without a finish reason is whole though a call is not",
        CHAT,
        "self.complete = self._has_output and self._calls.are_whole",
        "self.complete = self._has_output",
        CALLS,
    ),
    Bug(
        "a stream with an end marker and no finish reason was cut",
        "brainq/adapters/models/open_answer.py",
        "                reader.end_marked()\n",
        "",
        ("tests/unit/engine/models/test_disordered_streams.py::test_streams_read_through_the_sdk_of_their_vendor",),
    ),
    Bug(
        "unknown keys of a call go to every model",
        "brainq/adapters/models/wire.py",
        "replayable_reasoning(message, calls_wire(wire), model)}",
        "[one for one in message.reasoning if one.wire == calls_wire(wire)]}",
        CALLS,
    ),
    Bug(
        "null is no arguments at all",
        TEXT,
        "    return {} if value is None else value\n",
        "    return value\n",
        ARGUMENTS,
    ),
    Bug(
        "of two objects the first is taken",
        TEXT,
        "    if any(other != first for other in others):\n",
        "    if False:\n",
        ARGUMENTS,
    ),
    Bug(
        "half of a second object is mended away",
        TEXT,
        "        if holds_several_objects(text):\n",
        "        if False:\n",
        ARGUMENTS,
    ),
    Bug(
        "an empty object before the arguments is an object of its own",
        TEXT,
        "    at = _NOTHING_BEFORE.match(text).end()",
        "    at = _SPACE.match(text).end()",
        ARGUMENTS,
    ),
    Bug(
        "of a key with two values the last one counts",
        TEXT,
        "            if repr(made[key]) != repr(value):",
        "            if False:",
        ARGUMENTS,
    ),
    Bug(
        "a name that comes in two pieces is two calls",
        STREAM,
        "        return bool(part.name and self.name) and self.is_whole\n",
        "        return bool(part.name and self.name) and (part.name != self.name or self.is_whole)\n",
        CALLS,
    ),
    Bug(
        "a second reply after the end of the first makes its calls again",
        CHAT,
        "bool(self._finish_reason) or (has_role and self._had_no_role)",
        "(has_role and self._had_no_role)",
        ("tests/unit/engine/models/test_chat_wire.py",),
    ),
    Bug(
        "a second reply that says its role makes the calls of the first again",
        CHAT,
        "bool(self._finish_reason) or (has_role and self._had_no_role)",
        "bool(self._finish_reason)",
        ("tests/unit/engine/models/test_chat_wire.py",),
    ),
    Bug(
        "a service that says the role with each call has begun again",
        CHAT,
        "(has_role and self._had_no_role)",
        "has_role",
        ("tests/unit/engine/models/test_chat_wire.py",),
    ),
    Bug(
        "a call in the retired form is lost",
        CHAT,
        '    if message.get("function_call"):\n',
        "    if False:\n",
        ("tests/unit/engine/models/test_chat_wire.py",),
    ),
    Bug(
        "an item that asks for what was not offered is lost",
        RESPONSES,
        """if item.get("type") in FOREIGN_CALLS""",
        "if False",
        ("tests/unit/engine/models/test_responses_wire.py",),
    ),
    Bug(
        "a byte order mark hides the first event",
        "brainq/adapters/models/open_answer.py",
        ".removeprefix(codecs.BOM_UTF8)",
        "",
        ("tests/unit/runtime/text/test_text.py",),
    ),
    Bug(
        "a stream sets its timer again with each piece",
        "brainq/engine/models/asking/stall_clock.py",
        " and not 0 < self._watch.due - due < CUT_SLACK_S:",
        ":",
        ("tests/unit/engine/models/test_stall_clock.py",),
    ),
)
