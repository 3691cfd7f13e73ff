"""Runs the faults under load. Those of one kind of stage share one stage, and run one after the other."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

from rich.console import Console

from lab.faults.effects import NotSeen
from lab.faults.fault import Fault, Pace, wait_turns_end
from lab.faults.stage import (
    Stage,
    cluster_stage,
    doors_stage,
    hosts_stage,
    pair_stage,
    plain_stage,
    pooler_stage,
    postgres_stage,
    sentinel_stage,
    small_disk_stage,
)
from lab.faults.table.deploys import old_build_stage
from lab.faults.verdict import Verdict, judge, words_of

StageOf = Callable[[Path, float], AbstractContextManager[Stage]]
STAGES: dict[str, StageOf] = {
    "plain": plain_stage,
    "small disk": small_disk_stage,
    "sentinel": sentinel_stage,
    "cluster": cluster_stage,
    "postgres": postgres_stage,
    "synchronous pair": partial(pair_stage, synchronous=True),
    "asynchronous pair": partial(pair_stage, synchronous=False),
    "pooler": pooler_stage,
    "old build": old_build_stage,
    "hosts": hosts_stage,
    "doors": doors_stage,
}
BEAT_S = 3.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How the faults are run.

    times   each is injected
    rate    turns a second that are submitted meanwhile
    calm_s  of load before and after each
    seed    of where between two beats a fault strikes
    """

    times: int
    rate: float
    pace: Pace
    seed: int
    calm_s: float = 1.0


def run_faults(faults: Sequence[type[Fault]], plan: Plan, console: Console) -> Iterator[Verdict]:
    """Yield the verdict of each fault, in order, as soon as it is known."""
    for (kind, own), group in groupby(faults, key=lambda fault: (fault.kind, fault.own_stage)):
        chosen = list(group)
        yield from (Verdict(fault.name, why_not=fault.why_not()) for fault in chosen if fault.why_not())
        able = [fault for fault in chosen if not fault.why_not()]
        if own:
            yield from (_run_on_stages_of_its_own(fault, plan, console) for fault in able)
        elif able:
            yield from _run_on_one_stage(kind, able, plan, console)


def _run_on_one_stage(kind: str, faults: Sequence[type[Fault]], plan: Plan, console: Console) -> Iterator[Verdict]:
    with _opened(kind, plan) as stage:
        for fault in faults:
            verdict = Verdict(fault.name)
            run_fault(fault, stage, plan, verdict, times=plan.times, console=console)
            yield verdict


def _run_on_stages_of_its_own(fault: type[Fault], plan: Plan, console: Console) -> Verdict:
    verdict = Verdict(fault.name)
    for _ in range(plan.times):
        with _opened(fault.kind, plan) as stage:
            run_fault(fault, stage, plan, verdict, times=1, console=console)
    return verdict


@contextmanager
def _opened(kind: str, plan: Plan) -> Generator[Stage]:
    with tempfile.TemporaryDirectory(prefix="bq-faults-") as name, STAGES[kind](Path(name), plan.rate) as stage:
        yield stage


def run_fault(kind: type[Fault], stage: Stage, plan: Plan, verdict: Verdict, *, times: int, console: Console) -> None:
    """Inject the fault `times` times under load, let all turns end, and judge them. The verdict has any failure."""
    chance = random.Random(f"{plan.seed} {kind.name}")
    stage.producer.begin()
    try:
        for _ in range(times):
            verdict.times += 1
            _strike(kind(plan.pace), stage, plan, verdict, chance.uniform(0.0, BEAT_S))
            console.print(f"  {kind.name}: fired {verdict.fired[-1]}", style="dim", highlight=False)
            time.sleep(plan.calm_s)
    except (NotSeen, AssertionError, LookupError, OSError) as error:
        verdict.failure = f"{type(error).__name__}: {error}"
    finally:
        stage.effects.release()
        stage.replace_dead()
        stage.producer.end()
    submitted = stage.producer.take()
    verdict.otherwise += kind.losses(stage, submitted)
    judge(verdict, words_of(stage, submitted.at), stage.effects.writes())
    if kind.completes and verdict.not_completed and not verdict.failure:
        verdict.failure = f"turns that did not complete: {verdict.not_completed}"
    console.print(f"{kind.name}: {_said(verdict)}", markup=False, style="" if verdict.is_right else "red")


def _strike(fault: Fault, stage: Stage, plan: Plan, verdict: Verdict, after_s: float) -> None:
    wait_turns_end(stage)
    time.sleep(plan.calm_s)
    fault.prepare(stage)
    if fault.holds:
        time.sleep(after_s)  # where in the middle between two beats it strikes is left to chance
    fault.strike(stage)
    verdict.fired.append(fault.fired(stage))
    verdict.unknown += fault.unknown
    verdict.recovery_s += fault.recovery_s(stage)


def _said(verdict: Verdict) -> str:
    spread = verdict.spread()
    took = f", recovery {spread[0]:.1f} / {spread[1]:.1f} s" if spread else ""
    said = (
        f"fired {sum(map(bool, verdict.fired))} of {verdict.times}, {verdict.turns} turns, {len(verdict.lost)} lost, "
    )
    said += f"{len(verdict.doubled)} doubled, {verdict.unknown} unknown{took}"
    worst = [verdict.failure, *verdict.lost[:5], *verdict.doubled[:5]]
    return "\n    ".join([said, *filter(None, worst)])
