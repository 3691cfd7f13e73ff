"""The check of JSON schemas that come from outside: whether values can be validated by them in bounded time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from brainq.engine.gates.patterns import UnusablePattern, check_pattern
from brainq.runtime.text.shorten import beginning

if TYPE_CHECKING:
    from jsonschema import FormatChecker


MAX_COMPILED_BYTES = 16_000_000  # of all patterns of a schema together, which bounds the time of the check
MAX_SUBSCHEMAS = 5_000
_MAX_SHOWN_CHARS = 300
MAX_UNEVALUATED = 3
"""The most `unevaluated*` keywords that may apply to one part of a value. Each of them validates the part once more by
all schemas below it."""
_UNEVALUATED = frozenset({"unevaluatedProperties", "unevaluatedItems"})
_IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_IN_PLACE = ("not", "if", "then", "else")
_DYNAMIC = ("$dynamicRef", "$recursiveRef")


class PatternSizes:
    """The total size of the patterns of one schema, or of several that come together.

    A repeated pattern counts once.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._bytes = 0

    def add(self, pattern: str) -> None:
        """Add a pattern. Raises UnusablePattern, also if there are too many."""
        if pattern in self._seen:
            return
        self._bytes += check_pattern(pattern)
        self._seen.add(pattern)
        if self._bytes > MAX_COMPILED_BYTES:
            raise UnusablePattern(
                f"its {len(self._seen):,} patterns up to here are too large together; write fewer, or with shorter "
                "ranges, and bound a text by minLength and maxLength"
            )


class UnresolvedReference(ValueError):
    """The error of a `$ref` whose target is not in the schema. Targets outside the schema are never fetched."""

    def __init__(self, reference: str) -> None:
        super().__init__(beginning(reference, _MAX_SHOWN_CHARS))


def schema_problem(schema: Mapping[str, Any], sizes: PatternSizes | None = None) -> str:
    """Return why values cannot be validated by the schema, with the place and the remedy.

    Returns "" for a usable schema of draft 2020-12. Raises UnresolvedReference.

    sizes: the patterns of the schemas that come with it, or None if it comes alone.
    """
    if (size := schema_size(schema)) > MAX_SUBSCHEMAS:
        return f"it has {size:,} parts; at most {MAX_SUBSCHEMAS:,} are checked, so split or simplify it"
    sizes = PatternSizes() if sizes is None else sizes
    if problem := _keyword_problem(schema, sizes):
        return problem
    return _SchemaWalk(schema, sizes).problem()


def subschemas(schema: object) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and all schemas in it, without those that are true or false."""
    from referencing.jsonschema import DRAFT202012

    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            yield cast("Mapping[str, Any]", part)
            waiting.extend(DRAFT202012.subresources_of(cast("Any", part)))


class _SchemaWalk:
    """A walk through all schemas that a validator can reach: those in the schema, and those that a `$ref` leads to."""

    def __init__(self, schema: Mapping[str, Any], sizes: PatternSizes) -> None:
        from referencing import Registry, Resource
        from referencing.jsonschema import DRAFT202012

        resource: Resource[Any] = Resource.from_contents(schema, default_specification=DRAFT202012)
        registry: Registry[Any] = Registry()
        self._root = schema
        self._sizes = sizes
        self._resolver: Any = registry.resolver_with_root(resource)
        self._seen: set[int] = set()
        self._checked = 0  # the size of the targets of references that are not in a place for schemas

    def problem(self) -> str:
        waiting: list[object] = [self._root]
        references: set[str] = set()
        while waiting:
            for part in subschemas(waiting.pop()):
                if id(part) in self._seen:
                    continue
                self._seen.add(id(part))
                if problem := self._problem_here(part):
                    return problem
                reference = part.get("$ref")
                if reference is None or reference in references:
                    continue
                references.add(reference)
                target = self._target(reference)
                if id(target) in self._seen:
                    continue
                if problem := self._problem_of_target(reference, target):
                    return problem
                waiting.append(target)
        return self._unevaluated_problem()

    def _unevaluated_problem(self) -> str:
        waiting = [(part, 0) for part in subschemas(self._root)]
        most: dict[int, int] = {}  # by schema: how many unevaluated keywords apply at and above it
        while waiting:
            part, above = waiting.pop()
            here = above + (not _UNEVALUATED.isdisjoint(part))
            if here > MAX_UNEVALUATED:
                return (
                    f"more than {MAX_UNEVALUATED} unevaluatedProperties or unevaluatedItems in it apply to one part of "
                    "a value, one within another; keep the outermost, or use additionalProperties"
                )
            if here > most.get(id(part), -1):
                most[id(part)] = here
                waiting += [(inner, here) for inner in self._held_in_place(part)]
        return ""

    def _held_in_place(self, part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield the schemas that apply to the same part of a value."""
        inner: list[Any] = [part.get(word) for word in _IN_PLACE]
        inner += [choice for word in _IN_PLACE_LISTS for choice in part.get(word, ())]
        inner += part.get("dependentSchemas", {}).values()
        if "$ref" in part:
            inner.append(self._target(part["$ref"]))
        yield from (schema for schema in inner if isinstance(schema, Mapping))

    def _problem_here(self, part: Mapping[str, Any]) -> str:
        for word in _DYNAMIC:
            if word in part:
                return f"{word} is not supported; use $ref"
        # The validator would switch to another draft's rules, or look elsewhere for a $ref.
        for word in ("$schema", "$id"):
            if word in part and part is not self._root:
                return f"a part of it has a {word} of its own; take it out"
        if "patternProperties" in part and "unevaluatedProperties" in part:
            return "it has both patternProperties and unevaluatedProperties; use additionalProperties"
        return ""

    def _target(self, reference: str) -> object:
        from referencing.exceptions import Unresolvable

        try:
            return self._resolver.lookup(reference).contents
        except (Unresolvable, ValueError, LookupError, TypeError):
            raise UnresolvedReference(reference) from None

    def _problem_of_target(self, reference: str, target: object) -> str:
        self._checked += schema_size(target)
        if self._checked > MAX_SUBSCHEMAS:
            return "it refers to too many places outside of $defs; put what it refers to there"
        if problem := _keyword_problem(target, self._sizes):
            return f"{beginning(reference, _MAX_SHOWN_CHARS)!r} in it leads to what is not a schema: {problem}"
        return ""


def _keyword_problem(schema: object, sizes: PatternSizes) -> str:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(cast("Any", schema), format_checker=_format_checker(sizes))
    except SchemaError as error:
        words = str(error.cause) if isinstance(error.cause, UnusablePattern) else error.message
        return f"{beginning(words, _MAX_SHOWN_CHARS)} at {beginning(error.json_path, _MAX_SHOWN_CHARS)}"
    return ""


def _format_checker(sizes: PatternSizes) -> FormatChecker:
    """Return a check of the schema's patterns alone: jsonschema's own check would use Python's syntax."""
    from jsonschema import FormatChecker

    def is_usable(pattern: object) -> bool:
        if isinstance(pattern, str):
            sizes.add(pattern)
        return True

    checker = FormatChecker(formats=())
    checker.checks("regex", raises=UnusablePattern)(is_usable)
    return checker


def schema_size(schema: object) -> int:
    """Return the number of possible schemas in it: objects, and true and false."""
    count = 0
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            count += 1
            waiting.extend(cast("Mapping[str, object]", part).values())
        elif isinstance(part, list):
            waiting.extend(cast("list[object]", part))
        else:
            count += isinstance(part, bool)
    return count
