"""The validation of a value by a JSON schema in bounded time, whoever wrote the schema and the value.

The validator is jsonschema's. An engine with bounded time matches its patterns, and unique items are found by their
canonical JSON. A part of the value is validated only once by the target of a reference, because choices that refer to
one another would multiply with each level of the value. All checks of a value together may take three seconds of this
thread's own time. Long ones yield the processor, because other threads of the process have other work.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from brainq.engine.gates.canonical import canonical_json
from brainq.engine.gates.patterns import TooLongForPattern, UnusablePattern, matches_anywhere, shown_pattern
from brainq.runtime.text.shorten import beginning

if TYPE_CHECKING:
    from jsonschema import TypeChecker
    from jsonschema.exceptions import ValidationError

MAX_CHECK_S = 3.0  # of this thread's processor time, which stops while other threads have the processor
MAX_ERRORS = 1_000
SLICE_S = 0.02
"""After this much of its own time, in seconds, a check sleeps for as long, because Python runs one thread at a time."""
MAX_REPEATS = 100
"""How often a number or text is validated in full by one reference. One object may occur at several places."""
MAX_KEPT_ERRORS = 20
UNCHECKED = "unchecked"
"""The `validator` of an error that says why a value could not be validated."""
_MAX_MESSAGE_CHARS = 1_000
_Check = Callable[[Any, Any, Any, Any], Any]


class _Stopped(Exception):
    """The reason why the validation of a value stopped."""


class _TimeLimit(threading.local):
    ends_at = float("inf")
    rests_at = float("inf")

    def begin(self, most_s: float) -> None:
        now = time.thread_time()
        self.ends_at, self.rests_at = now + most_s, now + SLICE_S
        self.known: dict[tuple[str, int], _KnownErrors] = {}
        self.open: set[tuple[str, int]] = set()

    def end(self) -> None:
        self.ends_at = self.rests_at = float("inf")
        self.known = {}

    def check(self) -> None:
        now = time.thread_time()
        if now > self.ends_at:
            raise _Stopped("it takes too long to validate this by its schema")
        if now > self.rests_at:
            time.sleep(SLICE_S)
            self.rests_at = now + SLICE_S


@dataclass(slots=True)
class _KnownErrors:
    """The result of validating a part of the value by a reference: its first errors, and how often it was requested."""

    errors: tuple[dict[str, Any], ...]
    times: int = 1


_TIME_LIMIT = _TimeLimit()


class SchemaValidator:
    """The validator of one schema, which must be without problems (`schema_problem`). Thread-safe."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        from referencing import Registry

        # The schema is read as draft 2020-12, whatever it says, also where it refers to itself.
        words = {word: value for word, value in schema.items() if word != "$schema"}
        empty: Registry[Any] = Registry()  # nothing is fetched
        self._validator: Any = _validator_class()(words, registry=empty)

    def errors(self, value: Any, most_s: float = MAX_CHECK_S) -> list[ValidationError]:
        """Return the first thousand errors. If the validation stopped, return one error with the word UNCHECKED."""
        from jsonschema.exceptions import ValidationError
        from referencing.exceptions import Unresolvable

        _TIME_LIMIT.begin(most_s)
        try:
            return list(itertools.islice(self._validator.iter_errors(value), MAX_ERRORS))
        except (_Stopped, TooLongForPattern, UnusablePattern) as reason:
            words = str(reason)
        except RecursionError:
            words = "it is nested too deeply"
        except Unresolvable as lost:
            words = f"its schema refers to what is not in it ({beginning(str(lost), 200)})"
        except BaseException as failure:
            # jsonschema's map of types panics if its own comparison meets the recursion limit.
            if type(failure).__name__ != "PanicException":
                raise
            words = "it is nested too deeply"
        finally:
            _TIME_LIMIT.end()
        return [ValidationError(words, validator=UNCHECKED, instance=value)]


@lru_cache(maxsize=1)
def _validator_class() -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    stock: Mapping[str, _Check] = Draft202012Validator.VALIDATORS
    ours: dict[str, _Check] = {
        **stock,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties(stock["additionalProperties"]),
        "uniqueItems": _unique_items,
        "$ref": _checked_reference(stock["$ref"]),
    }
    return extend(
        Draft202012Validator,
        {word: _timed(check) for word, check in ours.items()},
        # The search for unevaluated properties and items requests this type at each schema.
        type_checker=Draft202012Validator.TYPE_CHECKER.redefine("boolean", _is_boolean),
    )


def _timed(check: _Check) -> _Check:
    def timed(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        _TIME_LIMIT.check()
        for error in check(validator, value, instance, schema) or ():
            error.message = beginning(error.message, _MAX_MESSAGE_CHARS)  # it contains the whole instance
            yield error

    return timed


def _checked_reference(stock: _Check) -> _Check:
    """Return a check that, for the same part, repeats its own errors without those of the parts below.

    A schema contains no `$id` or `$dynamicRef`, so one reference always leads to one place.
    """

    def referred(validator: Any, reference: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
        from jsonschema.exceptions import ValidationError

        key = reference, id(instance)
        known = _TIME_LIMIT.known.get(key)
        if known is not None and (isinstance(instance, dict | list) or known.times >= MAX_REPEATS):
            for found in known.errors:
                yield ValidationError(**found)
            return
        if key in _TIME_LIMIT.open:  # no part of a value contains itself, so the reference leads back to itself
            raise RecursionError
        _TIME_LIMIT.open.add(key)
        errors = list(itertools.islice(stock(validator, reference, instance, schema), MAX_ERRORS))
        _TIME_LIMIT.open.remove(key)
        times = 1 if known is None else known.times + 1
        _TIME_LIMIT.known[key] = _KnownErrors(tuple(map(_without_context, errors[:MAX_KEPT_ERRORS])), times)
        yield from errors

    return referred


def _without_context(error: ValidationError) -> dict[str, Any]:
    return {
        "message": error.message,
        "validator": error.validator,
        "validator_value": error.validator_value,
        "path": tuple(error.path),
        "schema_path": tuple(error.schema_path),
        "instance": error.instance,
        "schema": error.schema,
    }


def _is_boolean(_checker: TypeChecker, instance: Any) -> bool:
    _TIME_LIMIT.check()
    return isinstance(instance, bool)


def _pattern(validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if validator.is_type(instance, "string") and not _found(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {shown_pattern(pattern)}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, _schema: Any
) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    for pattern, schema in patterns.items():
        for name, value in instance.items():
            if _found(pattern, name):
                yield from validator.descend(value, schema, path=name, schema_path=pattern)


def _additional_properties(stock: _Check) -> _Check:
    def additional_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if (patterns := schema.get("patternProperties")) and validator.is_type(instance, "object"):
            found = {name: True for name in instance if any(_found(pattern, name) for pattern in patterns)}
            schema = {
                "properties": {**schema.get("properties", {}), **found}
            }  # properties that a pattern matched are not additional
        yield from stock(validator, value, instance, schema)

    return additional_properties


def _found(pattern: str, text: str) -> bool:
    _TIME_LIMIT.check()
    return matches_anywhere(pattern, text)


def _unique_items(validator: Any, wanted: bool, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if not wanted or not validator.is_type(instance, "array"):
        return
    if len({canonical_json(item) for item in instance}) < len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")
