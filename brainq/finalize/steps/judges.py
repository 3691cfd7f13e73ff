"""Asking for the turn to be judged."""

from __future__ import annotations

from brainq.brain import Brain
from brainq.finalize.judges.schedule import schedule_prompt_judges
from brainq.finalize.step import StepContext


class ScheduleJudges:
    """Plans a judgement for each judge of the turn's prompt, then rings for them. Judging is not part of the chain.

    A crash between the two loses doorbells only: they are rung again by the retry, or by the sweeper, which sees
    that the rows are due. A doorbell that comes twice finds its row taken.
    """

    name = "judges"
    limit_s: float | None = None  # no code of the brain

    def is_configured(self, brain: Brain) -> bool:
        return any(template.judges for template in brain.prompts.values())

    def run(self, context: StepContext) -> None:
        claim = context.claim
        names = schedule_prompt_judges(context.turn, context.brain.prompts)
        context.records.record_judges(claim, claim.session_id, claim.turn_id, names)
        for name in names:
            context.chain.ring_judge(claim.session_id, claim.turn_id, name)
