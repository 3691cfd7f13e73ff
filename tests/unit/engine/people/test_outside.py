"""OutsideDesk: what a result from outside becomes, and which tokens are refused."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.contracts.call import ToolFailure, ToolSuccess, new_outside_token
from brainq.contracts.claim import CallRef
from brainq.contracts.file import File, FileLimits
from brainq.contracts.status import Effect, TraceStatus
from brainq.engine.people.outside import MAX_RESULT_CHARS, OutsideDesk
from brainq.engine.tools.results import OutcomeUnknown, ToolError, WithFiles
from brainq.errors import InvalidInput, TokenRefused
from tests.support.blobs import BlobsInMemory, png
from tests.support.stand_in import stand_in
from tests.unit.engine.people.fakes import CALL, SESSION, TURN, Asks, Facts, Intent, Intents, Outside, asked

REF = CallRef(SESSION, TURN, CALL)


class Desk:
    """A desk, and all it was given."""

    def __init__(self, **given: Any) -> None:
        self.outside = Outside(word=given.get("word", "SETTLED"), known={"job-7": REF})
        self.facts = given.get("facts", Facts())
        self.intents = given.get("intents", Intents())
        self.blobs = BlobsInMemory()
        self.desk = OutsideDesk(
            blobs=self.blobs,
            limits=FileLimits(),
            outside=stand_in(self.outside),
            calls=stand_in(self.facts),
            holds=stand_in(Asks(given.get("asked", {}))),
            intents=stand_in(self.intents),
        )


def test_a_result_is_the_message_a_worker_would_have_written() -> None:
    made = Desk()
    assert made.desk.complete("job-7", {"total": 3, "of": ("a", "b")}) == "settled"
    message = made.outside.messages[0]
    assert (message.content, message.is_error) == ('{"total":3,"of":["a","b"]}', False)
    assert (message.role, message.name, message.call_id) == ("tool", "order", CALL)
    assert (message.turn, message.step) == (TURN, 3)
    assert made.outside.statuses == [TraceStatus.COMPLETED]
    (recorded,) = made.intents.recorded
    assert recorded == (2, ToolSuccess(value={"total": 3, "of": ["a", "b"]}), False)


def test_files_of_a_result_are_kept_and_its_message_refers_to_them() -> None:
    made = Desk()
    picture = File(png(), name="plan.png")
    made.desk.complete("job-7", WithFiles("here", [picture]))
    assert made.outside.messages[0].attachments == (picture.attachment,)
    assert made.blobs.kept == {(SESSION, picture.attachment.sha256): png()}
    text: Any = ["plan.png"]
    for wrong in (WithFiles("x", text), WithFiles("x", [picture] * 21)):
        with pytest.raises(InvalidInput, match="files"):
            made.desk.complete("job-7", wrong)


def test_a_partial_result_says_so() -> None:
    made = Desk()
    made.desk.complete("job-7", "half", partial=True)
    assert "[incomplete" in made.outside.messages[0].content


def test_a_failure_is_an_error_the_model_reads() -> None:
    made = Desk()
    assert made.desk.fail("job-7", "the shop\nis closed.") == "settled"
    message = made.outside.messages[0]
    assert (message.content, message.is_error) == ("The tool failed: the shop is closed.", True)
    assert made.outside.statuses == [TraceStatus.FAILED]
    assert made.intents.recorded[0][1] == ToolFailure(error="the shop is closed.", error_type="OutsideFailure")


def test_a_failure_may_be_in_words_of_ones_own() -> None:
    made = Desk()
    made.desk.fail("job-7", ToolError("Sold out.\nTry tea.", retryable=True))
    assert made.outside.messages[0].content == "Sold out.\nTry tea. You may try again."
    assert made.outside.statuses == [TraceStatus.FAILED]
    with pytest.raises(InvalidInput, match="error"):
        made.desk.fail("job-7", ToolError("  "))


@pytest.mark.parametrize("effect", [Effect.NETWORK, Effect.READ_ONLY])
def test_nobody_outside_may_know_either(effect: Effect) -> None:
    made = Desk(facts=Facts(effect=effect))
    made.desk.fail("job-7", OutcomeUnknown("The shop hung up."))
    message = made.outside.messages[0]
    assert message.is_error
    assert message.content.startswith("The shop hung up.")
    status = TraceStatus.FAILED if effect.is_read else TraceStatus.UNKNOWN
    assert made.outside.statuses == [status]
    assert [recorded.kind for _, recorded, _ in made.intents.recorded] == ([] if effect.is_read else ["unknown"])


def test_a_token_that_names_its_call_needs_no_looking_up() -> None:
    made = Desk()
    assert made.desk.complete(new_outside_token(REF), 1) == "settled"


def test_the_message_tells_of_arguments_that_a_person_changed() -> None:
    made = Desk(asked={CALL: asked(state="approved", edited=True, arguments={"item": "cocoa"})})
    made.desk.complete("job-7", "sent")
    assert made.outside.messages[0].content.startswith("[A person changed the arguments before this ran:")
    assert made.outside.messages[0].content.endswith("\nsent")


def test_one_that_comes_early_is_recorded_too() -> None:
    made = Desk(word="EARLY")
    assert made.desk.complete("job-7", "sent") == "early"
    assert made.intents.recorded[0][2] is False


def test_one_that_comes_late_is_evidence_for_sql_and_for_the_model() -> None:
    made = Desk(word="LATE")
    assert made.desk.complete("job-7", "sent") == "late"
    assert made.intents.recorded[0][2] is True
    (notice,) = made.outside.notices
    assert notice is not None
    assert 'order({"item": "tea"})' in notice.content
    assert "sent" in notice.content


def test_redacted_arguments_are_not_in_the_notice() -> None:
    made = Desk(word="LATE", intents=Intents([Intent(args_json=None)]))
    made.desk.complete("job-7", "sent")
    assert "order()" in str(made.outside.notices[0])


def test_a_read_leaves_neither_intent_nor_notice() -> None:
    made = Desk(facts=Facts(Effect.READ_ONLY))
    made.desk.complete("job-7", "seen")
    assert made.outside.notices == [None]
    assert made.intents.recorded == []


def test_without_sql_the_call_has_its_result(caplog: pytest.LogCaptureFixture) -> None:
    made = Desk(intents=Intents(is_down=True))
    assert made.desk.complete("job-7", "the result") == "settled"
    assert "not recorded" in caplog.text
    assert "the result" not in caplog.text


@pytest.mark.parametrize(("word", "said"), [("USED", "before"), ("BAD", "does not wait"), ("GONE", "ended")])
def test_a_refused_token_is_not_shown(word: str, said: str) -> None:
    made, token = Desk(word=word), new_outside_token(REF)
    with pytest.raises(TokenRefused, match=said) as refused:
        made.desk.complete(token, 1)
    assert token not in str(refused.value)
    assert made.intents.recorded == []


def test_a_token_nobody_knows_and_one_of_a_turn_that_is_gone_are_refused() -> None:
    with pytest.raises(TokenRefused, match="no call waits"):
        Desk().desk.complete("job-8", 1)
    with pytest.raises(TokenRefused, match="ended some time ago"):
        Desk(facts=Facts(is_gone=True)).desk.complete("job-7", 1)


@pytest.mark.parametrize("token", ["", "x" * 501, 7, None])
def test_what_is_no_token_is_refused(token: Any) -> None:
    with pytest.raises(InvalidInput, match="token: "):
        Desk().desk.complete(token, 1)


@pytest.mark.parametrize("result", [{1, 2}, float("nan"), "\ud800", "x" * MAX_RESULT_CHARS, object()])
def test_a_result_that_is_no_json_or_too_long_leaves_the_token_unused(result: Any) -> None:
    made = Desk()
    with pytest.raises(InvalidInput, match="result: "):
        made.desk.complete("job-7", result)
    assert made.outside.messages == []


@pytest.mark.parametrize("error", ["", "  \n", None, 7])
def test_an_error_says_something(error: Any) -> None:
    with pytest.raises(InvalidInput, match="error: "):
        Desk().desk.fail("job-7", error)


def test_a_long_error_is_cut() -> None:
    made = Desk()
    made.desk.fail("job-7", "no " * 5000)
    assert len(made.outside.messages[0].content) < 2_100
