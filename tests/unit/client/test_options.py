"""The options of a submit: one type, which every verb that takes them shows, and the fields of a request."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from brainq import AsyncClient, AsyncSession, Client, LimitsOverride, Session, ThinkLevel
from brainq.client.options import SubmitOptions, submit_fields
from brainq.contracts.brain import ThinkLevelName
from brainq.contracts.turn import LimitsFields


def keywords(verb: Any) -> list[str]:
    return [of.name for of in inspect.signature(verb).parameters.values() if of.kind is of.KEYWORD_ONLY]


@pytest.mark.parametrize("kind", [Client, AsyncClient, Session, AsyncSession])
def test_every_submit_shows_its_options_with_their_types(kind: Any) -> None:
    assert keywords(kind.submit) == list(SubmitOptions.__annotations__)
    assert "on_busy: 'OnBusy' = 'enqueue'" in str(inspect.signature(kind.submit))


def test_help_on_submit_teaches_each_option() -> None:
    for name in SubmitOptions.__annotations__:
        assert name in (Client.submit.__doc__ or ""), name


@pytest.mark.parametrize("verb", [Client.submit, Client.run, Client.schedule, AsyncClient.schedule])
def test_what_passes_options_on_shows_them_too(verb: Any) -> None:
    assert set(SubmitOptions.__annotations__) <= set(keywords(verb))


def test_an_option_of_a_wrong_name_is_a_type_error_with_the_near_one() -> None:
    with pytest.raises(TypeError, match=r"submit\(\) got an unexpected keyword argument 'modle'; did.*'model'\?"):
        submit_fields(Client.submit, {"modle": "openai:gpt-4.1"})
    with pytest.raises(TypeError, match=r"'zzzz'$"):
        submit_fields(Client.submit, {"zzzz": 1})
    with pytest.raises(TypeError, match=r"schedule\(\) got .* 'on_runing'; did.*'on_running'\?"):
        submit_fields(Client.schedule, {"on_runing": "queue"})


def test_limits_can_be_written_as_a_dict_of_their_fields() -> None:
    assert set(LimitsFields.__annotations__) == set(LimitsOverride.model_fields)


def test_every_level_of_thinking_has_its_word() -> None:
    assert ThinkLevelName.__args__ == tuple(ThinkLevel)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
