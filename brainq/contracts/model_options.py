"""ModelOptions: the options of a model call, beside its messages and tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Literal, TypedDict, cast

from pydantic import ConfigDict, Field, JsonValue, field_validator, model_validator

from brainq.contracts.base import MAX_PART_CHARS, Wire, check_json
from brainq.errors import InvalidInput

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a model may think before it answers."""
TOOL_CHOICES = ("auto", "none", "required")
"""The values of `tool_choice` beside a tool's name. They cannot select a tool of the same name."""
MAX_STOPS = 4  # the most that the strictest service accepts
CODE_ONLY = frozenset({"extra_headers", "extra_body"})
"""Options that only code can set. They may hold secrets, and a turn is stored."""
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")
_RESERVED_FIELDS = frozenset({"model", "messages", "input", "system", "instructions", "tools", "stream"})


class OptionsFields(TypedDict, total=False):
    """The fields of TurnOptions, for callers that write a dict."""

    temperature: float
    top_p: float
    seed: int
    stop: str | tuple[str, ...] | list[str]
    tool_choice: str
    parallel_tool_calls: bool
    reasoning_effort: Effort
    prompt_cache: bool


class TurnOptions(Wire):
    """The model options of a turn. None keeps the value of the brain or the service.

    temperature, top_p: how random the words are.
    seed: requests the same words again. Few services guarantee them.
    stop: up to 4 texts. The reply ends before the first of them.
    tool_choice: `auto`; `none` for no call; `required` for a call of any tool; or the name of the tool to call. A
        forced call applies to the turn's first step only.
    parallel_tool_calls: False allows at most one call in a reply.
    reasoning_effort: how much the model may think. A service with fewer levels gets the nearest one.
    prompt_cache: False turns off cache breakpoints and the cache key.
    """

    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    top_p: float | None = Field(default=None, gt=0, le=1, allow_inf_nan=False)
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    stop: tuple[str, ...] | None = None
    tool_choice: str | None = Field(default=None, max_length=200)
    parallel_tool_calls: bool | None = None
    reasoning_effort: Effort | None = None
    prompt_cache: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: object) -> object:
        for name in cast("Mapping[object, object]", given) if isinstance(given, Mapping) else ():
            if name not in cls.model_fields:
                raise InvalidInput(
                    f"options.{str(name)[:MAX_PART_CHARS]}", _unknown_option(str(name), cls.model_fields)
                )
        return cast("object", given)

    @field_validator("stop", mode="before")
    @classmethod
    def _stops(cls, value: object) -> object:
        given = (value,) if isinstance(value, str) else value
        if given is None:
            return None
        texts = tuple(cast("list[object]", given)) if isinstance(given, tuple | list) else ()
        if not texts or not all(isinstance(text, str) and text for text in texts):
            raise InvalidInput("options.stop", "it must be one text or several, none of them empty")
        if len(texts) > MAX_STOPS:
            raise InvalidInput("options.stop", f"it has {len(texts)} texts; services take {MAX_STOPS} at most")
        check_json("options.stop", list(texts))
        return texts

    @field_validator("tool_choice")
    @classmethod
    def _names_something(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise InvalidInput("options.tool_choice", f"it is empty; use {', '.join(TOOL_CHOICES)} or a tool's name")
        return value

    def explicit(self) -> dict[str, Any]:
        """Return the fields that are set."""
        # This runs at every step: pydantic's own iteration takes eight times as long.
        return {name: value for name, value in self.__dict__.items() if value is not None}


class ModelOptions(TurnOptions):
    """The model options of a brain, a turn or a step: those of a turn, and those that only code may set.

    extra_headers: HTTP headers beside the SDK's. They may hold secrets, so a turn cannot bring them, and they are never
        stored, logged or shown.
    extra_body: parameters of the service without an option here, merged into the request's JSON. They are treated like
        `extra_headers`.
    """

    model_config = ConfigDict(hide_input_in_errors=True)  # it may be a key with its newline

    extra_headers: Mapping[str, str] | None = Field(default=None, repr=False)
    extra_body: Mapping[str, JsonValue] | None = Field(default=None, repr=False)

    @field_validator("extra_headers", mode="before")
    @classmethod
    def _headers(cls, value: object) -> object:
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise InvalidInput("options.extra_headers", "must be a mapping of names to texts")
        for name, text in cast("Mapping[object, object]", value).items():
            if not isinstance(name, str) or not _HEADER.fullmatch(name):
                raise InvalidInput("options.extra_headers", f"{name!r} is not the name of an HTTP header")
            if not isinstance(text, str) or not (text.isascii() and text.isprintable()):
                raise InvalidInput("options.extra_headers", f"the value of {name!r} must be one line of ASCII text")
        return dict(cast("Mapping[str, str]", value))

    @field_validator("extra_body", mode="before")
    @classmethod
    def _body(cls, value: object) -> object:
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise InvalidInput("options.extra_body", "must be a mapping of names to JSON values")
        given = dict(cast("Mapping[str, object]", value))
        if taken := sorted(_RESERVED_FIELDS.intersection(given)):
            raise InvalidInput("options.extra_body", f"{', '.join(taken)}: brainq writes that itself; leave it out")
        return check_json("options.extra_body", given)

    def for_another_service(self) -> ModelOptions:
        """Return the options without `extra_headers` and `extra_body`.

        Both are meant for the service of the brain's own model, and may hold secrets that another must not receive.
        """
        if self.extra_headers is None and self.extra_body is None:
            return self
        return self.model_copy(update=dict.fromkeys(CODE_ONLY))

    def merged_over(self, below: ModelOptions) -> ModelOptions:
        """Return `below` with the options that are set here.

        Headers and parameters of the body are merged one by one.
        """
        if self is NO_OPTIONS or not (fields := self.explicit()):
            return below
        for name in CODE_ONLY & fields.keys():
            fields[name] = {**(getattr(below, name) or {}), **fields[name]}
        return below.model_copy(update=fields)


def as_model_options(turn: TurnOptions) -> ModelOptions:
    """Return a turn's explicit options, which can override others."""
    fields = turn.explicit()
    return ModelOptions.model_construct(**fields) if fields else NO_OPTIONS


NO_OPTIONS = ModelOptions()


def _unknown_option(name: str, known: Mapping[str, object]) -> str:
    if name in CODE_ONLY:
        return "it may hold secrets, and a turn is stored; give it to the brain, or in `for_step`"
    close = get_close_matches(name[:MAX_PART_CHARS], known, 1)  # it may be megabytes
    meant = f"did you mean {close[0]}?" if close else f"the options are {', '.join(known)}"
    return f"there is no such option; {meant}"
