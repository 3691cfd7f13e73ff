"""Bugs in what refusals of models' services are taken for, and in who is asked about a conversation."""

from __future__ import annotations

from lab.mutants.bug import Bug

TABLE = ("tests/unit/engine/models/test_refusals.py",)
ANSWERS = ("tests/unit/engine/models/test_refused.py",)
PARAMETERS = ("tests/unit/engine/models/test_refused.py",)
PYDANTIC = ("tests/contrib/pydantic_ai/test_refusals.py",)
REVIEWS = (
    "tests/integration/people/test_people_review.py::test_what_reads_a_conversation_is_of_the_brain_that_has_it",
)
WARNED = ("tests/integration/people/test_people_review.py::test_a_summary_that_no_model_wrote_is_warned_of",)
BODY = "brainq/adapters/models/error_body.py"
RULES = "brainq/adapters/models/refusal_rules.toml"
DECIDED = "brainq/adapters/models/refusals.py"
FAILURES = "brainq/adapters/models/failures.py"
OPEN = "brainq/adapters/models/open_answer.py"
VENDOR = "brainq/adapters/models/vendor_provider.py"

BUGS = (
    Bug(
        "a number inside a stream says nothing",
        DECIDED,
        "    if detail.status is not None:\n        return detail.status\n",
        "",
        TABLE,
    ),
    Bug("a request above the limit is asked again", DECIDED, "return requested > limit", "return False", TABLE),
    Bug(
        "a request as large as the limit is given up",
        DECIDED,
        "return requested > limit",
        "return requested >= limit",
        TABLE,
    ),
    Bug("an unknown 5xx is final", DECIDED, "(_FAILED if asked >= 500 else _REFUSED)", "_REFUSED", TABLE),
    Bug(
        "a wait in the body is not read",
        FAILURES,
        "wait_s=detail.wait_s if wait_s is None else wait_s",
        "wait_s=wait_s",
        TABLE,
    ),
    Bug("a body that is a list is not read", BODY, "isinstance(body, list)", "isinstance(body, tuple)", TABLE),
    Bug("what a service passes on of another is not read", BODY, '"metadata", ', "", TABLE),
    Bug("a text in place of an error loses its code", BODY, '"error_description", "raw", ', "", TABLE),
    Bug(
        "a quota of a day is taken for one of a minute",
        RULES,
        "words = ['PerDay', 'limit: 0\\b']",
        "words = ['limit: 0\\b']",
        TABLE,
    ),
    Bug(
        "the last name in a refusal is what it is about",
        FAILURES,
        "return min(places,",
        "return max(places,",
        PARAMETERS,
    ),
    Bug("a limit that is too large is left out", FAILURES, " or _OUTPUT_LIMIT_VALUE.search(text)", "", PARAMETERS),
    Bug("what was not sent is sent again without it", VENDOR, "if body == sent:", "if False:", PARAMETERS),
    Bug(
        "the limit of a reply keeps a name that was refused",
        "brainq/adapters/models/openai/provider.py",
        "(name for name in names if name not in refused)",
        "iter(names)",
        PARAMETERS,
    ),
    Bug("a redirect loop is tried again", FAILURES, '"TooManyRedirects", ', "", ANSWERS),
    Bug("CR alone ends no line", OPEN, '.replace(b"\\r", b"\\n")', "", ANSWERS),
    Bug(
        "LF after a CR in the piece before ends another line",
        OPEN,
        'piece.removeprefix(b"\\n"), False',
        "piece, False",
        ANSWERS,
    ),
    Bug("a web page is read as a stream", OPEN, 'if "html" in self._response', 'if "htmlx" in self._response', ANSWERS),
    Bug(
        "an account that is used up keeps the next member from being asked",
        "brainq/engine/models/asking/fallback.py",
        '"over_limit", "quota", "denied", ',
        "",
        ANSWERS,
    ),
    Bug(
        "a reply that the service could not use costs nothing",
        VENDOR,
        "sent.settle(known)",
        "sent.settle()",
        ANSWERS,
    ),
    Bug(
        "a limit inside a stream is waited for twice",
        "brainq/engine/models/asking/rate_permit.py",
        "failure.is_shared = is_kept and",
        "failure.is_shared = False and",
        ANSWERS,
    ),
    Bug(
        "pydantic-ai's class decides before the table",
        "brainq/contrib/pydantic_ai/wire.py",
        "    if isinstance(error, theirs.ModelHTTPError):\n        return _from_http_error(error, provider)\n",
        "",
        PYDANTIC,
    ),
    Bug(
        "a setting that was refused is sent again",
        "brainq/contrib/pydantic_ai/provider.py",
        "if model == request.model}",
        "if model != request.model}",
        PYDANTIC,
    ),
    Bug(
        "a compaction asks the default brain's model",
        "brainq/engine/people/intake.py",
        '"brain": newest.brain, ',
        "",
        REVIEWS,
    ),
    Bug(
        "nobody is told that a summary was not made",
        "brainq/engine/turn/before_step.py",
        "            why=made.why,\n",
        "",
        WARNED,
    ),
)
