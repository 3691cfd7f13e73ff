"""ModelOptions: what is taken, what is refused with its remedy, and whose word counts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from brainq import Brain, ModelOptions
from brainq.contracts.model import ModelFailure, parse_failure, render_failure
from brainq.contracts.model_options import NO_OPTIONS, OptionsFields, TurnOptions, as_model_options
from brainq.contracts.turn import TurnRequest
from brainq.engine.people.admission import read_request
from brainq.errors import InvalidInput

REFUSED = [
    ({"temprature": 1}, "options.temprature", "did you mean temperature?"),
    ({"loudness": 1}, "options.loudness", "the options are temperature"),
    ({"temperature": 2.5}, "options.temperature", "less than or equal to 2"),
    ({"temperature": float("nan")}, "options.temperature", "finite"),
    ({"top_p": 0}, "options.top_p", "greater than 0"),
    ({"seed": 2**63}, "options.seed", "less than"),
    ({"stop": []}, "options.stop", "none of them empty"),
    ({"stop": ["a", ""]}, "options.stop", "none of them empty"),
    ({"stop": list("abcde")}, "options.stop", "5 texts; services take 4"),
    ({"stop": "\ud83d"}, "options.stop", "surrogate"),
    ({"tool_choice": " "}, "options.tool_choice", "auto, none, required or a tool's name"),
    ({"reasoning_effort": "huge"}, "options.reasoning_effort", "'xhigh' or 'max'"),
]
CODE_ONLY = [
    ({"extra_headers": {"a b": "c"}}, "options.extra_headers", "not the name of an HTTP header"),
    ({"extra_headers": {"x": "a\r\nb: c"}}, "options.extra_headers", "one line"),
    ({"extra_headers": "x"}, "options.extra_headers", "mapping"),
    ({"extra_body": {"messages": []}}, "options.extra_body", "brainq writes that itself"),
    ({"extra_body": {"x": object()}}, "options.extra_body", "not JSON"),
    ({"extra_body": 1}, "options.extra_body", "mapping"),
]


def submitted(options: object) -> TurnRequest:
    return read_request({"session_id": "s1", "user_message": "hi", "options": options})


@pytest.mark.parametrize(("given", "field", "words"), REFUSED)
def test_a_turn_is_refused_where_it_enters(given: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=field) as refusal:
        submitted(given)
    assert refusal.value.field == field
    assert words in refusal.value.problem


@pytest.mark.parametrize(("given", "field", "words"), REFUSED + CODE_ONLY)
def test_a_brain_is_refused_where_it_is_made(given: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=field) as refusal:
        Brain("b", "offline:rules", options=given)
    assert words in refusal.value.problem
    with pytest.raises(ValidationError, match=next(iter(given))):
        ModelOptions(**given)


@pytest.mark.parametrize("given", [{"extra_headers": {"x": "y"}}, {"extra_body": {"top_k": 1}}])
def test_a_turn_cannot_bring_what_may_be_secret(given: dict[str, Any]) -> None:
    for options in (given, ModelOptions(**given)):
        with pytest.raises(InvalidInput, match="a turn is stored; give it to the brain"):
            submitted(options)


def test_a_name_of_megabytes_is_not_compared_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    def close(name: str, *_: Any) -> list[str]:
        compared.append(len(name))
        return []

    monkeypatch.setattr("brainq.contracts.model_options.get_close_matches", close)
    with pytest.raises(InvalidInput, match="there is no such option"):
        submitted({"x" * 5_000_000: 1})
    assert compared == [60]


def test_what_may_be_secret_is_not_shown() -> None:
    options = ModelOptions(extra_headers={"x-key": "s3cret"}, extra_body={"key": "s3cret"})
    assert "s3cret" not in repr(options)
    assert "s3cret" not in repr(Brain("b", "offline:rules", options=options).options)
    wrong_ones: list[dict[str, Any]] = [{"extra_headers": {"x-key": "s3cret\n"}}, {"extra_body": {"model": "s3cret"}}]
    for wrong in wrong_ones:
        with pytest.raises(ValueError, match=r"options\.extra") as refused:
            ModelOptions(**wrong)
        assert "s3cret" not in str(refused.value)


def test_a_turn_may_be_given_what_was_made_for_a_brain() -> None:
    request = submitted(ModelOptions(temperature=0, stop=("END",)))
    assert request.options == TurnOptions(temperature=0, stop=("END",))
    assert type(request.options) is TurnOptions
    assert request.options.explicit() == {"temperature": 0.0, "stop": ("END",)}
    assert TurnRequest.model_validate_json(request.model_dump_json(exclude_defaults=True)) == request


def test_a_brain_takes_a_mapping() -> None:
    assert Brain("b", "offline:rules", options={"seed": 7}).options == ModelOptions(seed=7)
    assert Brain("b", "offline:rules").options is NO_OPTIONS
    wrong: Any = 7
    with pytest.raises(InvalidInput, match="a mapping of its fields"):
        Brain("b", "offline:rules", options=wrong)


def test_they_can_be_written_as_a_dict_of_their_fields() -> None:
    assert set(OptionsFields.__annotations__) == set(TurnOptions.model_fields)


some_options = st.builds(
    ModelOptions,
    temperature=st.none() | st.sampled_from([0, 1]),
    seed=st.none() | st.integers(0, 3),
    tool_choice=st.none() | st.sampled_from(["auto", "none", "look"]),
    prompt_cache=st.none() | st.booleans(),
    extra_headers=st.none() | st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy")),
    extra_body=st.none() | st.dictionaries(st.sampled_from("ab"), st.integers(0, 3)),
)


@given(some_options, some_options, some_options)
def test_the_nearest_word_counts(step: ModelOptions, turn: ModelOptions, brain: ModelOptions) -> None:
    merged = step.merged_over(turn.merged_over(brain))
    assert merged == step.merged_over(turn).merged_over(brain)
    for name in ("temperature", "seed", "tool_choice", "prompt_cache"):
        said = [getattr(each, name) for each in (step, turn, brain) if getattr(each, name) is not None]
        assert getattr(merged, name) == (said[0] if said else None)
    for name in ("extra_headers", "extra_body"):
        both = [getattr(each, name) for each in (brain, turn, step) if getattr(each, name) is not None]
        assert getattr(merged, name) == ({k: v for each in both for k, v in each.items()} if both else None)


@given(some_options)
def test_who_says_nothing_changes_nothing(options: ModelOptions) -> None:
    assert NO_OPTIONS.merged_over(options) == options.merged_over(NO_OPTIONS) == options
    assert as_model_options(TurnOptions()).merged_over(options) is options


# Errors of turns whose model could not be asked: the reason is read from the text.


@pytest.mark.parametrize("kind", ["too_long", "over_limit", "filtered", "rate_limited", "quota"])
@pytest.mark.parametrize(("said", "read"), [(None, None), (0.2, 1), (20.5, 21)])
def test_what_was_said_is_read(kind: str, said: float | None, read: int | None) -> None:
    text = render_failure(kind, "openai: HTTP 4xx (again in 9 s)", said)
    assert text.endswith(": openai: HTTP 4xx (again in 9 s)")
    assert parse_failure(text) == ModelFailure(kind, read)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("error", [None, "", render_failure("server", "openai: HTTP 500"), "It is too_long"])
def test_any_other_error_is_as_it_was(error: str | None) -> None:
    assert parse_failure(error) is None
