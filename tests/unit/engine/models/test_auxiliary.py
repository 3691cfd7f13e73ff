"""Model calls beside a turn's steps."""

from __future__ import annotations

import pytest

from brainq.contracts.model import ModelReply
from brainq.engine.models.auxiliary import AuxiliaryModel
from brainq.engine.models.scripted import ScriptedProvider, says
from brainq.errors import ProviderError


def ask(reply: ModelReply) -> ModelReply:
    return AuxiliaryModel(ScriptedProvider([], auxiliary=lambda _: reply), "m").ask(
        "judge", "Judge.", "it", timeout_s=5
    )


@pytest.mark.parametrize("finish", ["length", "content_filter", "abort"])
def test_a_reply_that_is_not_whole_is_none(finish: str) -> None:
    with pytest.raises(ProviderError, match=f"incomplete: {finish}") as caught:
        ask(says('{"score": 0.9, "reas', finish=finish))
    assert caught.value.kind == "malformed"


def test_a_whole_one_is_given_back() -> None:
    assert ask(says("well")).text == "well"
