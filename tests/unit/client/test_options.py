"""The types of what a submit takes: written once for `Client`, once as a type, once as fields; all three agree."""

from __future__ import annotations

import inspect
from typing import get_type_hints

from brainq import AsyncClient, Client, LimitsOverride, ThinkLevel
from brainq.client.options import SubmitOptions
from brainq.contracts.brain import ThinkLevelName
from brainq.contracts.turn import LimitsFields


def test_the_event_loops_submit_takes_what_the_other_takes_with_its_types() -> None:
    hints = get_type_hints(Client.submit)
    named = [
        name
        for name, parameter in inspect.signature(Client.submit).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    assert get_type_hints(SubmitOptions) == {name: hints[name] for name in named}
    assert "Unpack[SubmitOptions]" in str(inspect.signature(AsyncClient.submit))


def test_limits_can_be_written_as_a_dict_of_their_fields() -> None:
    assert set(LimitsFields.__annotations__) == set(LimitsOverride.model_fields)


def test_every_level_of_thinking_has_its_word() -> None:
    assert ThinkLevelName.__args__ == tuple(ThinkLevel)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
