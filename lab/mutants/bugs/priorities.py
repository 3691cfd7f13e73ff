"""Bugs of what foreign producers' priorities and times become."""

from __future__ import annotations

from lab.mutants.bug import Bug

NAMES = "brainq/adapters/celery/names.py"
POISON = "brainq/adapters/celery/celery57/transport.py"
LISTS = ("tests/unit/adapters/celery/test_names.py",)
PRODUCERS = ("tests/integration/fleet/test_producers.py::test_a_submit_of_any_priority_is_accepted",)
EARLY = ("tests/integration/fleet/test_producers.py::test_a_submit_for_later_is_a_rejected_row_that_names_the_remedy",)
DOCTOR = ("tests/integration/cli/test_doctor.py",)

BUGS = (
    Bug(
        "a stock producer's priorities are read by nobody",
        NAMES,
        "_ALL_PRIORITIES if queue == TURNS_QUEUE else _OWN_PRIORITIES",
        "_OWN_PRIORITIES",
        LISTS,
    ),
    Bug("a producer's lowest priority is read by nobody", NAMES, "tuple(range(10))", "tuple(range(9))", PRODUCERS),
    Bug(
        "lists are named as kombu does not name them",
        NAMES,
        '_PRIORITY_SEPARATOR = "\\x06\\x16"',
        '_PRIORITY_SEPARATOR = "\\x16\\x06"',
        LISTS,
    ),
    Bug("what can wait is read before what cannot", NAMES, "sorted(lists, key=itemgetter(0))", "lists", LISTS),
    Bug(
        "the fleet counts only our own priorities",
        NAMES,
        "list_name(queue, priority) for priority in priorities_of(queue))",
        "list_name(queue, priority) for priority in _OWN_PRIORITIES)",
        PRODUCERS,
    ),
    Bug(
        "a foreign submit for later is quarantined without a row",
        POISON,
        'if is_early and headers["task"] != TURN_SUBMIT:',
        "if is_early:",
        EARLY,
    ),
    Bug(
        "a foreign submit for later runs at once",
        POISON,
        'headers[UNSERVED_HEADER] = "eta"',
        "headers[UNSERVED_HEADER] = None",
        EARLY,
    ),
    Bug(
        "doctor takes one queue's messages for another's",
        "brainq/cli/doctor/services.py",
        "len(names.priorities_of(queue))",
        "2",
        DOCTOR,
    ),
)
