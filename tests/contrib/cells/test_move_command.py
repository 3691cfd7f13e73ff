"""`brainq move`: a tenant moves, and what is under way is shown."""

from __future__ import annotations

import json

import pytest
from redis.exceptions import ConnectionError as RedisGone
from typer.testing import CliRunner

from brainq.app.wiring.cells import Cells
from brainq.cli.main import app
from brainq.contracts.cell import Placement
from brainq.contrib.cells.move import tenant_mover
from brainq.contrib.cells.side import MoveSide
from brainq.errors import InvalidInput, SetupError, Unreachable
from tests.contrib.cells.two import TENANT, TwoCells, parked_tenant


@pytest.fixture
def runner(two: TwoCells, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.setenv("BRAINQ_CELLS", two.cells)
    return CliRunner()


def test_a_command_moves_a_tenant_and_says_what_went(two: TwoCells, runner: CliRunner) -> None:
    parked_tenant(two)
    done = runner.invoke(app, ["move", TENANT, "--to", "b", "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert (said["from_cell"], said["to_cell"], said["phase"], said["counts"]["turns"]) == ("a", "b", "done", 5)
    assert two.placed() == Placement("b", 2)
    again = runner.invoke(app, ["move", TENANT, "--to", "b"])
    assert (again.exit_code, "is already in b" in again.stderr) == (0, True)
    listed = runner.invoke(app, ["move", "--list", "--json"])
    assert json.loads(listed.stdout) == []
    acts = json.loads(runner.invoke(app, ["audit", "--json"]).stdout)
    assert (acts[0]["act"], acts[0]["subject"]) == ("move", f"{TENANT} b")


def test_a_move_under_way_is_listed_with_its_phase(two: TwoCells, runner: CliRunner) -> None:
    two.moves.begin(TENANT, "a", "b", 2, "copying", "gone", 0.0)
    listed = runner.invoke(app, ["move", "--list"])
    assert "copying" in listed.stdout
    assert TENANT in listed.stdout


def test_a_session_does_not_move_alone(two: TwoCells) -> None:
    with pytest.raises(InvalidInput, match="is part of a tenant, which moves as a whole; name acme:"):
        two.mover().move("acme:1", "b")


def test_a_tenant_that_is_named_without_its_colon_is_no_other_one(two: TwoCells) -> None:
    with pytest.raises(InvalidInput, match=r"there is no tenant 'acme'; name acme: with its colon"):
        two.mover().move("acme", "b")
    assert two.directory.placement("acme") is None


def test_a_move_that_a_cell_does_not_answer_says_which_and_that_it_is_to_be_run_again(two: TwoCells) -> None:
    def side(made: MoveSide) -> MoveSide:
        if made.name == "b":
            raise RedisGone("gone")
        return made

    with pytest.raises(Unreachable, match=r"cell 'a' or 'b' does not answer .*Repeat the move of tenant 'acme:'"):
        two.mover(side=side).move(TENANT, "b")
    assert two.mover(owner="other").move(TENANT, "b").phase == "done", "nobody waits for the lease"


def test_in_a_deployment_of_one_cell_nothing_moves(two: TwoCells) -> None:
    with pytest.raises(SetupError, match="there is only one cell"):
        tenant_mover(Cells(two.a.wiring), "mover")


def test_a_tenant_that_is_on_its_way_goes_nowhere_else_first(two: TwoCells) -> None:
    two.moves.begin(TENANT, "a", "b", 2, "copying", "gone", 0.0)
    with pytest.raises(InvalidInput, match="is being moved to cell 'b'; finish that move first"):
        two.mover().move(TENANT, "a")
    assert two.mover().move(TENANT, "b").phase == "done"
