"""Which judges a turn gets. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from brainq.contracts.prompt import PromptTemplate
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.view import EndedTurn


def schedule_prompt_judges(turn: EndedTurn, prompts: Mapping[str, PromptTemplate]) -> tuple[str, ...]:
    """The judges that the turn's prompt template names, each once, in its order.

    None for a turn without an answer of the model's own: a text that stands for a limit, a timeout, a failure or a
    cancel is brainq's, and its score would count against the prompt. None, too, for a `prompt_id` that the brain
    does not have: producers may number prompts of their own.
    """
    if turn.ending is not Ending.COMPLETED or turn.stop_reason is not StopReason.ANSWERED:
        return ()
    template = prompts.get(turn.request.prompt_id or "")
    return () if template is None else tuple(dict.fromkeys(name for name in template.judges if name.strip()))
