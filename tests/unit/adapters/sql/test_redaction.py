"""What SQL keeps of an ended turn whose content is kept out."""

from __future__ import annotations

from brainq.adapters.sql.records import redact_result
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import Citation, TurnResult

SECRET = "my secret"


def test_no_content_of_a_result_is_kept() -> None:
    """Of every field that can hold what was said, found or changed."""
    whole = TurnResult(
        turn_id="turn-1",
        session_id="s1",
        text=SECRET,
        local_citations=(Citation(source=SECRET),),
        web_citations=(Citation(source=SECRET),),
        rendered_content_paths=(SECRET,),
        context_pack_json=SECRET,
        ending=Ending.CANCELLED,
        stop_reason=StopReason.CANCELLED,
        error=SECRET,
        last_agent_message=SECRET,
        diff=SECRET,
        parked_ms=7,
        steps=2,
    )

    kept = redact_result(whole)

    assert SECRET not in kept.model_dump_json()
    assert (kept.ending, kept.error, kept.parked_ms, kept.steps) == (Ending.CANCELLED, StopReason.CANCELLED.value, 7, 2)
