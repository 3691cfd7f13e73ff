"""Which cells a front of several asks, in what order, and what it says while one of them is away."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisGone

from brainq.contracts.cell import Placement, ranked_cells
from brainq.contracts.claim import CallRef
from brainq.contracts.turn import TurnRequest
from brainq.contrib.cells.asking import named_away
from brainq.contrib.cells.routing import RoutedCells
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.brains import read_brains
from brainq.errors import CellUnreachable, TenantMoved, TenantMoving, TurnNotFound
from brainq.runtime.settings.deployment import load_settings
from tests.support.pump import QUICK

NAMES = ("a", "b", "c")
SETTINGS = load_settings(
    **{
        **QUICK,
        "cells": '{"a": {"redis": "redis://a", "sql": "sqlite:///a"}, "b": {"redis": "redis://b", "sql": '
        '"sqlite:///b"}, "c": {"redis": "redis://c", "sql": "sqlite:///c"}}',
    }
)


class FakeCell:
    """A cell: `turns` and `tokens` by id, with their sessions. `asked` is of all cells."""

    is_open = True

    def __init__(self, name: str, asked: list[str]) -> None:
        self.name = name
        self.asked = asked
        self.is_away = False
        self.word: Placement | None = None
        self.turns: dict[str, str] = {}
        self.tokens: dict[str, str] = {}
        self.settings = SimpleNamespace(cell=name)
        self.sql_is_away = False
        self.store = SimpleNamespace(turns=SimpleNamespace(get=self._turn, find=self._find), ping=self._ping_sql)
        self.state = SimpleNamespace(outside=SimpleNamespace(find=self._token))
        self.tenants = SimpleNamespace(require_shown=self._require_shown)

    def answer(self) -> None:
        self.asked.append(self.name)
        if self.is_away:
            raise RedisGone("gone")

    def look(self, *, sql: bool) -> None:
        self.answer()

    def ping(self) -> None:
        self.answer()

    def _ping_sql(self) -> None:
        if self.sql_is_away:
            raise RedisGone("its SQL is")

    def _turn(self, turn_id: str) -> Any:
        self.answer()
        found = self.turns.get(turn_id)
        return found and SimpleNamespace(turn_id=turn_id, request_key="key", session_id=found)

    def _find(self, sought: str) -> list[Any]:
        self.answer()
        return [self._turn(turn_id) for turn_id in self.turns if turn_id.startswith(sought)]

    def _token(self, token: str) -> CallRef | None:
        self.answer()
        found = self.tokens.get(token)
        return None if found is None else CallRef(found, "t", "c1-0")

    def _require_shown(self, session_id: str) -> None:
        if self.word is not None:
            if self.word.cell:
                raise TenantMoved("acme:", self.word.cell, self.word.epoch)
            raise TenantMoving("it moves")


class FakeDirectory:
    """Home's directory: tenants by cell, at epoch 1."""

    def __init__(self, **placed: str) -> None:
        self.placed = {f"{name}:": Placement(cell, 1) for name, cell in placed.items()}

    def placement(self, tenant: str) -> Placement | None:
        return self.placed.get(tenant)

    def lived_here(self, tenant: str) -> bool:
        return False


class Front:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.cells = {name: FakeCell(name, self.asked) for name in NAMES}
        self.routed = RoutedCells(SETTINGS, read_brains(Brain("b", "offline:rules")))
        self.directory = FakeDirectory(acme="b", globex="c")
        inside: Any = self.routed
        inside._wirings = dict(self.cells)
        inside.__dict__["directory"] = self.directory


@pytest.fixture
def front() -> Front:
    return Front()


def test_a_failure_that_names_its_cell_is_not_named_twice(front: Front) -> None:
    named = CellUnreachable("a", "gone")
    assert named_away("b", named) is named
    assert front.routed.failed("acme:1", named) is named
    found = front.routed.failed("acme:1", RedisGone("gone"))
    assert isinstance(found, CellUnreachable)
    assert (found.cell, str(found)) == ("b", "cell 'b' does not answer: ConnectionError")
    other = ValueError()
    assert front.routed.failed("acme:1", other) is other
    gone = RedisGone("gone")
    assert front.routed.failed("", gone) is gone, "it is about no session"


def test_a_turn_is_asked_for_where_it_was_born_and_then_everywhere(front: Front) -> None:
    front.cells["b"].turns["b-1"] = "acme:1"
    assert front.routed.turn_row("b-1").session_id == "acme:1"
    assert front.asked == ["b"]
    front.cells["c"].turns["b-2"] = "globex:1"
    front.asked.clear()
    assert front.routed.turn_row("b-2").session_id == "globex:1"
    assert (front.asked[0], sorted(front.asked)) == ("b", ["a", "b", "c"])


def test_what_a_cell_that_is_away_may_have_is_not_said_to_be_nowhere(front: Front) -> None:
    front.cells["b"].is_away = True
    for ask in (
        lambda: front.routed.turn_row("b-1"),
        lambda: front.routed.turn_row("t-1"),
        lambda: front.routed.of_turn("t-1"),
        lambda: front.routed.find_rows("t-1"),
        lambda: front.routed.of_token("secret"),
    ):
        with pytest.raises(CellUnreachable, match="cell 'b'"):
            ask()
    front.cells["c"].tokens["secret"] = "globex:1"
    front.cells["c"].turns["t-1"] = "globex:1"
    assert front.routed.of_token("secret").settings.cell == "c"
    assert front.routed.turn_row("t-1").session_id == "globex:1"
    assert [row.turn_id for row in front.routed.find_rows("t-1")] == ["t-1"]
    with pytest.raises(CellUnreachable):
        front.routed.find_rows("t-")  # more may begin so there
    front.cells["b"].is_away = False
    with pytest.raises(TurnNotFound):
        front.routed.turn_row("t-2")
    assert front.routed.of_token("no").settings.cell == front.routed.of_turn("t-2").settings.cell == "a"
    assert front.routed.find_rows("") == ()


def test_a_turn_that_is_in_two_cells_is_one_match(front: Front) -> None:
    for name in "ab":
        front.cells[name].turns["t-1"] = "acme:1"
    assert len(front.routed.find_rows("t-")) == 1


def test_a_question_goes_to_the_cells_that_it_concerns(front: Front) -> None:
    def ask(**about: Any) -> list[str]:
        front.asked.clear()
        asked = front.routed.ask(lambda wiring: wiring.look(sql=True), **about)
        assert [name for name, _ in asked.answers] == sorted(front.asked)
        return sorted(front.asked)

    assert ask(session="acme:1") == ["b"]
    assert ask(prefixes=["globex:", "acme:1"]) == ["b", "c"]
    assert ask() == ask(prefixes=["acme:", "*"]) == ask(prefixes=[]) == list(NAMES)
    front.cells["b"].is_away = True
    with pytest.raises(CellUnreachable, match="cell 'b'"):
        ask(session="acme:1")
    assert front.routed.ask(lambda wiring: wiring.look(sql=True)).away == ("b",)


def test_what_belongs_to_no_tenant_is_asked_of_the_next_cell_while_its_own_is_away(front: Front) -> None:
    order = ranked_cells("key", NAMES)

    def first() -> str:
        def question(wiring: Any) -> str:
            wiring.look(sql=True)
            return wiring.name

        return front.routed.first_to_answer("key", question)

    assert first() == order[0]
    front.cells[order[0]].is_away = True
    assert first() == order[1]
    front.cells[order[1]].is_away = True
    assert first() == order[2]
    front.cells[order[2]].is_away = True
    with pytest.raises(RedisGone):
        first()


def test_a_front_is_ready_as_long_as_one_cell_is(front: Front) -> None:
    for name in "ab":
        front.cells[name].is_away = True
    front.routed.ping()
    front.cells["c"].sql_is_away = True
    with pytest.raises(CellUnreachable, match="nor does any other cell"):
        front.routed.ping()


def test_a_change_of_all_cells_says_which_has_it_not(front: Front) -> None:
    front.cells["a"].is_away = True
    with pytest.raises(CellUnreachable, match=r"cell 'a'.*the other cells have it"):
        front.routed.do_in_each(lambda wiring: wiring.look(sql=True))
    assert front.asked == list(NAMES), "home first, and each of the others"
    for name in "bc":
        front.cells[name].is_away = True
    with pytest.raises(CellUnreachable, match="nor does any other cell"):
        front.routed.do_in_each(lambda wiring: wiring.look(sql=True))


def test_what_the_old_cell_says_of_the_new_one_is_for_reads_once_that_has_all(front: Front) -> None:
    front.cells["c"].word = Placement("", 2)
    assert front.routed.of_session("acme:1").settings.cell == "b"
    front.routed.learn(TenantMoved("acme:", "c", 2))
    assert front.routed.settle("acme:1").settings.cell == "c", "what begins something waits there"
    for _ in range(2):
        with pytest.raises(TenantMoving):
            front.routed.of_session("acme:1")
    front.cells["c"].word = None
    assert front.routed.of_session("acme:1").settings.cell == "c"
    front.cells["c"].word = Placement("", 3)
    assert front.routed.of_session("acme:1").settings.cell == "c", "it is about to move on, and has all until then"


def test_a_verb_that_finds_nothing_looks_where_the_tenant_is_now(front: Front) -> None:
    def find() -> str:
        cell = front.routed.of_session("acme:1").settings.cell
        if cell != "c":
            raise TurnNotFound("no turn")
        return cell

    with pytest.raises(TurnNotFound):
        front.routed.follow("acme:1", find)
    front.cells["b"].word = Placement("", 2)
    with pytest.raises(TenantMoving):
        front.routed.follow("acme:1", find)
    front.cells["b"].word = Placement("c", 2)
    assert front.routed.follow("acme:1", find) == "c"
    assert front.routed.follow("globex:1", find) == "c"


def test_a_verb_is_sent_on_three_times_and_no_more(front: Front) -> None:
    tried: list[int] = []

    def act() -> None:
        tried.append(1)
        raise TenantMoved("acme:", "c", len(tried) + 1)

    with pytest.raises(TenantMoved):
        front.routed.follow("acme:1", act)
    assert len(tried) == 4


def test_an_id_that_is_drawn_says_its_cell(front: Front) -> None:
    request = TurnRequest(turn_id="x-1", session_id="acme:1", user_message="hi")
    assert front.routed.named(request).turn_id == "b-x-1"
