"""Judges by their names: the brain's own, and the two that are shipped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from brainq.contracts.judgement import Judge
from brainq.finalize.judges.model_judge import FAITHFULNESS, RELEVANCE, ModelJudge
from brainq.finalize.judges.rules import RuleFaithfulness, RuleRelevance
from brainq.providers.auxiliary import AuxiliaryModel

SHIPPED = ("faithfulness", "relevance")


def judges_named(
    names: Iterable[str], own: Sequence[Judge], auxiliary: AuxiliaryModel | None
) -> dict[str, Judge | None]:
    """The judge of each name; None for one that nobody has, see `unknown_judge`.

    own         come first: one called `relevance` takes the place of the shipped one
    auxiliary   the model that judges; None: the shipped judges go by rules
    """
    by_name = {judge.name: judge for judge in (*_shipped(auxiliary), *own)}
    return {name: by_name.get(name) for name in names}


def unknown_judge(name: str, own: Sequence[Judge]) -> str:
    """Why a turn cannot be judged by this name, and what to do."""
    known = ", ".join(sorted({*SHIPPED, *(judge.name for judge in own)}))
    return (
        f"no judge is named {name!r}; known are {known}. Correct the judges of the PromptTemplate, or give the brain "
        f"one with this name (Brain(judges=[...])) and run `brainq finalize retry TURN judge:{name}`"
    )


def _shipped(auxiliary: AuxiliaryModel | None) -> tuple[Judge, ...]:
    by_rules = (RuleFaithfulness(), RuleRelevance())
    if auxiliary is None:
        return by_rules
    rubrics = (FAITHFULNESS, RELEVANCE)
    return tuple(
        ModelJudge(judge.name, rubric, auxiliary, judge)
        for judge, rubric in zip(by_rules, rubrics, strict=True)
    )
