"""Bugs of what a process keeps of turns that are over."""

from __future__ import annotations

from lab.mutants.bug import Bug

HISTORIES = "brainq/adapters/redis/conversations.py"
ENDED = "brainq/engine/finalize/recall.py"
IN_HISTORIES = ("tests/unit/adapters/redis/test_conversation_memory.py",)
IN_ENDED = ("tests/unit/engine/finalize/test_ended_turns.py",)
IN_OBJECTS = ("tests/integration/engine/test_kept_objects.py",)

BUGS = (
    Bug(
        "a character of a kept history counts as one byte",
        HISTORIES,
        "BYTES_A_MESSAGE + sys.getsizeof(item)",
        "BYTES_A_MESSAGE + len(item)",
        IN_HISTORIES,
    ),
    Bug(
        "the arguments of a kept history count as their JSON",
        HISTORIES,
        "if message.calls or message.extra else 0",
        "if message.extra else 0",
        IN_HISTORIES,
    ),
    Bug(
        "a kept history's newest message counts once, and is there twice",
        HISTORIES,
        "sum(self.sizes) + sys.getsizeof(self.newest)",
        "sum(self.sizes)",
        IN_HISTORIES,
    ),
    Bug(
        "an ended turn is kept when its chain is finished",
        ENDED,
        "        with self._lock:\n            self._drop((claim.session_id, claim.turn_id))\n        return word",
        "        return word",
        (*IN_ENDED, *IN_OBJECTS),
    ),
    Bug(
        "what an ended turn brought as its history counts nothing",
        ENDED,
        "texts += [message.content for message in request.history]",
        "pass",
        IN_ENDED,
    ),
    Bug(
        "an ended turn that leaves makes no room",
        ENDED,
        "self._bytes -= 0 if kept is None else kept[2]",
        "pass",
        IN_ENDED,
    ),
    Bug(
        "ended turns are kept without a bound",
        ENDED,
        "while self._bytes > self._max_bytes:",
        "while False:",
        IN_ENDED,
    ),
    Bug(
        "a timer that is no longer wanted is kept until it is due",
        "brainq/runtime/processes/timers.py",
        "if number % _TIDY_EVERY == 0:",
        "if False:",
        IN_OBJECTS,
    ),
)
