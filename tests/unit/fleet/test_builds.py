"""Builds: the digest of what a brain declares, what a worker says when it claims, which build may go, and what is in an
upgrade's way.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from brainq.adapters.redis.script_text import LUA
from brainq.cli.doctor.upgrade import check_formats, check_name, check_pins
from brainq.contracts.answers import Answers
from brainq.contracts.brain import Approvals
from brainq.contracts.build import FORMATS_READ, STATE_FORMAT, BuildTurn, BuildWorker, Ramp, Versions, brains_behind
from brainq.contracts.callbacks import TurnInfo
from brainq.contracts.status import Effect
from brainq.contracts.turn import Limits
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.brains import read_brains
from brainq.engine.brain.declared import brain_digest, worker_build
from brainq.engine.finalize.result import build_warning
from brainq.errors import InvalidInput
from brainq.fleet.builds import versions_of, versions_of_cells


def shop(prompt: Any = "You keep a shop.", **given: Any) -> Brain:
    brain = Brain(given.pop("name", "shop"), given.pop("model", "offline:rules"), prompt, **given)

    @brain.tool(effect=Effect.READ_ONLY)
    def look(shelf: int) -> str:  # pyright: ignore[reportUnusedFunction]
        """Look."""
        return f"{shelf}"

    return brain


def first(turn: TurnInfo) -> str:
    return "One."


def second(turn: TurnInfo) -> str:
    return "One."


DIFFERING = {
    "its prompt": shop("You keep a zoo."),
    "its model": shop(model="openai:gpt-5"),
    "its name": shop(name="zoo"),
    "its limits": shop(limits=Limits(max_steps=3)),
    "how it is asked": shop(options={"temperature": 0.5}),
    "its approvals": shop(approvals=Approvals(effects=(Effect.NETWORK,))),
    "a callable's name": shop(first),
}


def test_the_digest_follows_what_is_declared() -> None:
    assert brain_digest(shop()) == brain_digest(shop())
    assert re.fullmatch(r"[0-9a-f]{12}", brain_digest(shop()))
    digests = {what: brain_digest(brain) for what, brain in DIFFERING.items()}
    assert len({*digests.values(), brain_digest(shop()), brain_digest(shop(second))}) == len(DIFFERING) + 2


def test_a_tools_schema_and_effect_are_declared() -> None:
    def with_tool(effect: Effect, *, other: bool = False) -> Brain:
        brain = Brain("shop", "offline:rules")

        def order(item: str) -> str:
            """Order."""
            return item

        def order_two(item: str, count: int) -> str:
            """Order."""
            return item * count

        order_two.__name__ = "order"
        brain.tool(effect=effect)(order_two if other else order)
        return brain

    brains = [
        with_tool(Effect.NETWORK),
        with_tool(Effect.LOCAL_WRITE),
        with_tool(Effect.NETWORK, other=True),
    ]
    assert len({brain_digest(brain) for brain in brains}) == 3


def test_whom_it_tells_and_its_pin_are_not_declared() -> None:
    told = shop(callbacks={"on_turn_end": lambda end: None}, redact_logs=True, max_live_turns=4, pin="turn")  # pyright: ignore[reportUnknownLambdaType]
    assert brain_digest(told) == brain_digest(shop())


def test_a_pin_is_one_of_two_words() -> None:
    with pytest.raises(InvalidInput, match="pin"):
        Brain("shop", "offline:rules", pin="forever")  # pyright: ignore[reportArgumentType]


def test_a_worker_without_build_and_pin_says_nothing_of_them() -> None:
    build = worker_build(read_brains(shop()), None)
    assert (build.declared, build.queues, build.is_distinct) == ("", (), False)
    assert build.words == ("shop", f"#{brain_digest(shop())}")
    assert build.name.startswith("brains-")


def test_a_pinned_brain_or_a_named_build_is_told_apart_and_a_ramp_is_said() -> None:
    build = worker_build(read_brains([shop(pin="turn"), shop(name="zoo")]), "1.5")
    build.ramp = Ramp("1.5", "1.4", 1_000)
    said = json.loads(build.declared)
    assert (said["build"], said["ramp"]) == ("1.5", ["1.5", "1.4", 1_000])
    assert said["brains"][""] == said["brains"]["shop"] == {"digest": brain_digest(shop()), "pin": "turn"}
    assert said["brains"]["zoo"]["pin"] == ""
    assert build.queues == ("1.5",)
    assert worker_build(read_brains(shop(pin="turn")), None).queues[0].startswith("brains-")


def test_the_format_is_one_in_python_and_lua() -> None:
    lua = (LUA / "lib/state_format.lua").read_text()
    found = re.search(r"STATE_FORMAT, OLDEST_FORMAT = (\d+), (\d+)", lua)
    assert found
    assert (int(found[1]), int(found[2])) == (STATE_FORMAT, min(FORMATS_READ))
    assert tuple(range(min(FORMATS_READ), STATE_FORMAT + 1)) == FORMATS_READ


def worker(build: str, digest: str, pool: str = "coordinator", formats: tuple[int, ...] = (1,)) -> BuildWorker:
    return BuildWorker(f"{pool}@{build}", pool, build, formats, {"shop": (digest, "turn")})


PINNED: dict[str, Any] = {"is_pinned": True, "format": 1}


def turn(build: str, digest: str, state: str = "active", **given: Any) -> BuildTurn:
    return BuildTurn("s1", "t1", state, "", build, digest, **{**PINNED, **given})


OLD, NEW = worker("1.4", "d01d"), worker("1.5", "0e00")


def versions(workers: list[BuildWorker], turns: list[BuildTurn], known: Any = None) -> Versions:
    """The versions of a deployment of one cell."""
    found = versions_of(workers, turns, known or {}, {})
    return versions_of_cells(Answers((("", found),)), {"": None}, is_one=True)


def test_a_build_may_go_once_no_turn_needs_it() -> None:
    turns = [turn("1.4", "d01d", "parked"), turn("1.5", "0e00"), turn("1.4", "d01d", is_pinned=False)]
    old, new = versions([OLD, NEW], turns).builds
    assert (old.needed, old.says) == (1, "1 turn needs build 1.4: keep its workers")
    assert (old.brains[0].parked, old.brains[0].live, old.brains[0].pinned) == (1, 1, 1)
    assert new.needed == 1
    (old, _) = versions([OLD, NEW], turns[1:]).builds
    assert old.says == "build 1.4 is empty: its workers can stop"
    (only,) = versions([OLD], []).builds
    assert only.says == "build 1.4 is the only one"


def test_a_released_turn_and_one_whose_brain_another_build_has_need_it_no_more() -> None:
    turns = [turn("1.4", "d01d")]
    assert versions_of([OLD, NEW], turns, {}, {"d01d": "0e00"}).builds[0].needed == 0
    assert versions_of([OLD, worker("1.5", "d01d")], turns, {}, {}).builds[0].needed == 0


def test_turns_of_a_build_without_workers_wait_for_it() -> None:
    found = versions([NEW], [turn("1.4", "d01d")], {"1.4": {"shop": "d01d"}}).builds[0]
    assert found.says == "1 turn waits for build 1.4: start its workers, or brainq versions release 1.4 --to BUILD"


def over_cells(*away: str, **turns: list[BuildTurn]) -> dict[str, str]:
    """The sentence about each build. Both have a worker in each cell."""
    found = tuple((cell, versions_of([OLD, NEW], its, {}, {})) for cell, its in turns.items())
    return {build.name: build.says for build in versions_of_cells(Answers(found, away), {"a": None}).builds}


def test_over_cells_a_build_may_go_once_no_cell_needs_it_and_each_has_answered() -> None:
    kept = [turn("1.4", "d01d", "parked")]
    assert over_cells(a=[], b=[])["1.4"] == "build 1.4 is empty in every cell: its workers can stop"
    assert over_cells(a=[], b=kept)["1.4"] == "1 turn needs build 1.4 in cell b: keep its workers there"
    away = over_cells("c", a=[], b=[])["1.4"]
    assert away == "build 1.4 is empty in cell a, b; c did not answer, so keep its workers"


def test_over_cells_turns_wait_where_the_build_has_no_workers() -> None:
    known, turns = {"1.4": {"shop": "d01d"}}, [turn("1.4", "d01d")]
    cells = (("a", versions_of([OLD, NEW], [], known, {})), ("b", versions_of([NEW], turns, known, {})))
    old, _ = versions_of_cells(Answers(cells), {"a": None}).builds
    assert (old.needed, old.needed_in, old.workers) == (1, {"a": 0, "b": 1}, {"coordinator": 1})
    assert old.says.startswith("1 turn waits for build 1.4 in cell b: start its workers there, or brainq versions rel")


def test_over_cells_counts_are_summed_and_ramps_that_differ_are_said() -> None:
    live, ramp = [turn("1.4", "d01d"), turn("1.4", "d01d")], Ramp("1.5", "1.4", 1_000)
    cells = (("a", versions_of([OLD, NEW], live, {}, {})), ("b", versions_of([OLD], live, {}, {})))
    found = versions_of_cells(Answers(cells), {"a": ramp, "b": None})
    (brain,) = found.builds[0].brains
    assert (brain.live, brain.pinned, found.builds[0].workers) == (4, 4, {"coordinator": 2})
    assert found.ramp == "cell a: 10 % of sessions begin on 1.5, the others on 1.4; cell b: no ramp"
    assert versions_of_cells(Answers(cells), {"a": ramp, "b": ramp}).ramp.startswith("10 %")


def test_before_an_upgrade_its_name_its_formats_and_its_pins_are_looked_at() -> None:
    here = worker_build(read_brains(shop(pin="turn")), "1.5")
    assert check_name(here, [OLD]).level == "ok"
    assert check_name(here, [NEW]).level == "FAIL"
    assert check_name(worker_build(read_brains(shop()), None), []).level == "warn"
    assert check_formats([OLD], []).level == "ok"
    assert check_formats([OLD], [turn("1.6", "a", format=2)]).level == "FAIL"
    assert check_formats([worker("1.4", "a", formats=())], []).level == "warn"
    turns = [turn("1.4", "d01d")]
    (kept,) = check_pins(here, versions_of([OLD], turns, {}, {}).builds, turns)
    assert "1 turn pinned to build 1.4" in kept.said.replace("turns", "turn")
    assert "brainq versions release 1.4 --to 1.5" in kept.remedy


def test_a_later_builds_report_may_say_more() -> None:
    text = json.loads(NEW.to_json()) | {"more": 1}
    assert BuildWorker.from_json(json.dumps(text)) == NEW


def test_a_result_warns_only_where_the_brain_changed() -> None:
    assert build_warning(()) == build_warning(("1.4#a", "1.5#a")) == ()
    (said,) = build_warning(("1.4#a", "1.5#b"))
    assert "build 1.4 (brain a), then build 1.5 (brain b)" in said


def test_brains_are_behind_if_every_coordinator_that_has_them_declares_others() -> None:
    here = worker_build(read_brains([shop(), shop(name="zoo")]), None)
    same = {brain.name: (brain.digest, "") for brain in here.brains}
    old = {"shop": ("0" * 16, ""), "other": ("1" * 16, "")}

    def worker(pool: str, brains: dict[str, tuple[str, str]]) -> BuildWorker:
        return BuildWorker(f"{pool}@1", pool, "b", FORMATS_READ, brains)

    assert brains_behind(here, []) == []
    assert brains_behind(here, [worker("coordinator", same)]) == []
    assert brains_behind(here, [worker("coordinator", old)]) == ["shop"]
    assert brains_behind(here, [worker("coordinator", old), worker("coordinator", same)]) == []
    assert brains_behind(here, [worker("parallel", old)]) == []
