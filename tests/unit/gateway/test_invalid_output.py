"""An answer that does not fit its schema is no success on any wire, and its reason is told."""

from __future__ import annotations

from a2a.types.a2a_pb2 import TASK_STATE_FAILED
from ag_ui.core import RunErrorEvent

from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.contrib.a2a.tasks import end_task, new_task
from brainq.contrib.ag_ui.events import end_event
from brainq.contrib.ai_sdk.chunks import MessageWriter
from brainq.contrib.mcp_server.turn_report import TurnReport
from brainq.gateway.wires.chat.fold import TurnEnded
from brainq.gateway.wires.openai.errors import failure_response
from brainq.gateway.wires.openai.part_fold import PartFailed, part_of_result

WHY = "the answer does not fit its schema: $.name is missing"
RESULT = TurnResult(
    turn_id="t01", session_id="s1", text="{}", ending=Ending.COMPLETED, stop_reason=StopReason.INVALID_OUTPUT, error=WHY
)


def test_a2a_tells_a_failed_task() -> None:
    told = end_task(new_task("t01", "s1"), RESULT)
    assert (told.state, told.text, told.note) == (TASK_STATE_FAILED, "{}", WHY)


def test_ag_ui_tells_an_error() -> None:
    event = end_event("s1", "t01", RESULT)
    assert isinstance(event, RunErrorEvent)
    assert (event.message, event.code) == (WHY, "invalid_output")


def test_the_ai_sdk_is_told_an_error() -> None:
    chunks = MessageWriter("t01").render(TurnEnded(RESULT, "{}", True))
    assert {"type": "error", "errorText": WHY} in chunks
    assert chunks[-1]["finishReason"] == "error"


def test_mcp_tells_a_failure() -> None:
    told = TurnReport(turn_id="t01", session="s1", state="completed", stop_reason="invalid_output")
    assert told.is_failure
    assert not told.model_copy(update={"stop_reason": "answered"}).is_failure


def test_openais_wires_tell_an_error() -> None:
    *_, last = part_of_result("t01", 1, RESULT)
    assert isinstance(last, PartFailed)
    assert (last.text, last.message) == ("{}", WHY)
    assert failure_response(last).status_code == 500
