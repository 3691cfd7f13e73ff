"""The text of a doorbell."""

from __future__ import annotations

import json

import pytest

from brainq.adapters.celery.envelope import ARGS, ARGSREPR, ROOT_ID, TAG, TASK_ID, TOOL, envelope, template
from brainq.adapters.celery.names import (
    CALL_RUN,
    FINALIZE_QUEUE,
    FINALIZE_STEP,
    READ_ONLY_QUEUE,
    TURN_ADVANCE,
    TURNS_QUEUE,
)
from brainq.errors import InvalidInput


def test_an_envelope_carries_its_arguments_in_a_plain_json_body() -> None:
    message = json.loads(envelope(FINALIZE_STEP, ("s1", "t1", "usage"), "t1.usage", FINALIZE_QUEUE, "t1"))
    args, kwargs, embed = json.loads(message["body"])
    assert (args, kwargs) == (["s1", "t1", "usage"], {})
    assert set(embed.values()) == {None}
    assert message["headers"]["argsrepr"] == "('s1', 't1', 'usage')"
    assert message["headers"]["id"] == message["properties"]["correlation_id"] == "t1.usage"
    assert message["headers"]["root_id"] == "t1"
    assert message["headers"]["ignore_result"] is True
    assert message["properties"]["delivery_info"] == {"exchange": "", "routing_key": FINALIZE_QUEUE}


def test_one_argument_is_shown_as_python_shows_a_tuple() -> None:
    message = json.loads(envelope(TURN_ADVANCE, ("s1",), "t1", TURNS_QUEUE, "t1"))
    assert message["headers"]["argsrepr"] == repr(("s1",))


def test_a_template_holds_each_placeholder_and_is_json_already() -> None:
    text = template(TURN_ADVANCE, TURNS_QUEUE)
    counts = {name: text.count(name) for name in (ARGS, ARGSREPR, TASK_ID, ROOT_ID, TAG)}
    assert counts == {ARGS: 1, ARGSREPR: 1, TASK_ID: 2, ROOT_ID: 1, TAG: 1}
    assert json.loads(text)["headers"]["task"] == TURN_ADVANCE


def test_a_call_is_shown_by_its_tools_name_and_other_tasks_by_their_own() -> None:
    assert template(CALL_RUN, READ_ONLY_QUEUE).count(TOOL) == 1
    shown = json.loads(envelope(CALL_RUN, ("s1", "t1"), "t1.1", READ_ONLY_QUEUE, "t1", tool="_find"))["headers"]
    assert (shown["task"], shown["shadow"]) == ("brainq.call.run", "brainq.call.run:_find")
    with pytest.raises(InvalidInput, match="tool"):
        envelope(CALL_RUN, ("s1", "t1"), "t1.1", READ_ONLY_QUEUE, "t1", tool='a"b')
    assert json.loads(template(TURN_ADVANCE, TURNS_QUEUE))["headers"]["shadow"] is None


def test_two_rings_of_one_task_have_different_tags() -> None:
    texts = {envelope(TURN_ADVANCE, ("s1", "t1", 1), "t1.1", TURNS_QUEUE, "t1") for _ in range(10)}
    assert len(texts) == 10


@pytest.mark.parametrize("bad", ['a"b', "a b", "%TASK_ID%", "a\\b", "", "ä", "{s}", True, None, 1.5, ["x"]])
def test_an_argument_outside_the_alphabet_of_ids_is_refused(bad: object) -> None:
    with pytest.raises(InvalidInput, match=r"args\[1\]"):
        envelope(TURN_ADVANCE, ("s1", bad), "t1.1", TURNS_QUEUE, "t1")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("field", ["task_id", "root_id"])
def test_a_malformed_id_is_refused_by_name(field: str) -> None:
    ids = {"task_id": "t1.1", "root_id": "t1", field: "no good"}
    with pytest.raises(InvalidInput, match=field):
        envelope(TURN_ADVANCE, ("s1",), ids["task_id"], TURNS_QUEUE, ids["root_id"])
