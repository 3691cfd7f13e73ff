"""How much of a model's limit each of several cells may use."""

from __future__ import annotations

from random import Random

import pytest

from brainq.contracts.limit_share import (
    LEASE_S,
    USED_S,
    WHOLE,
    Share,
    ShareReport,
    ShareRow,
    decide_share,
    fair_shares,
    share_without_home,
)
from brainq.engine.upkeep.limit_shares import is_due


def report(*, share: int = 0, used: int = 0, waits: bool = False, requests: int | None = None) -> ShareReport:
    return ShareReport("openai:gpt", 1, share, used, waits, requests)


def test_none_gets_more_than_it_wants_and_what_one_leaves_the_others_have() -> None:
    assert fair_shares({"a": WHOLE, "b": 0}, None) == {"a": WHOLE, "b": 0}
    assert fair_shares({"a": WHOLE, "b": WHOLE}, None) == {"a": WHOLE // 2, "b": WHOLE // 2}
    assert fair_shares({"a": WHOLE, "b": 200_000, "c": WHOLE}, None) == {"a": 400_000, "b": 200_000, "c": 400_000}


@pytest.mark.parametrize("requests", [1, 2, 3, 7, 60, 999])
def test_shares_of_few_requests_are_whole_ones_and_lose_none(requests: int) -> None:
    for turn in range(4):
        shares = fair_shares(dict.fromkeys("abc", WHOLE), requests, turn)
        counts = [share * requests // WHOLE for share in shares.values()]
        assert sum(counts) == requests
        assert max(counts) - min(counts) <= 1


def test_one_request_a_minute_goes_to_each_cell_in_turn() -> None:
    got = [fair_shares({"a": WHOLE, "b": WHOLE}, 1, turn) for turn in range(4)]
    assert [max(shares, key=lambda name: shares[name]) for shares in got] == ["a", "b", "a", "b"]


def test_a_busy_cell_gets_what_an_idle_one_gave_back() -> None:
    idle = ShareRow("a", held=0, wanted=0, silent_s=100.0)
    begins = decide_share("b", report(waits=True), [idle], cells=2, asking_s=0.0)
    assert begins.share == WHOLE // 2  # the other may be about to ask
    assert decide_share("b", report(waits=True), [idle], cells=2, asking_s=99.0) == Share(WHOLE, WHOLE)


def test_what_another_may_use_yet_is_not_given() -> None:
    busy = ShareRow("a", held=WHOLE, wanted=WHOLE, silent_s=1.0)
    assert decide_share("b", report(waits=True), [busy], cells=2, asking_s=99.0).share == 0
    # And it gives back its half when it asks, which is held until its Redis has said that it takes no more.
    asks = ShareRow("b", held=0, wanted=WHOLE, silent_s=1.0)
    given_back = decide_share("a", report(share=WHOLE, used=10, waits=True), [asks], cells=2, asking_s=99.0)
    assert given_back == Share(WHOLE // 2, WHOLE)


def test_what_a_cell_has_used_is_held_until_it_counts_no_more() -> None:
    asks = ShareRow("b", held=0, wanted=WHOLE, silent_s=1.0)
    used = decide_share("a", report(share=WHOLE // 2, used=700_000, waits=True), [asks], cells=2, asking_s=99.0)
    assert used == Share(WHOLE // 2, 700_000)


def test_a_dead_cells_share_returns_when_what_it_took_counts_no_more() -> None:
    def share(silent_s: float, asking_s: float = 1000.0) -> int:
        dead = ShareRow("a", held=WHOLE, wanted=WHOLE, silent_s=silent_s)
        return decide_share("b", report(waits=True), [dead], cells=2, asking_s=asking_s).share

    assert share(LEASE_S + USED_S - 1) == 0
    assert share(LEASE_S + USED_S + 1) == WHOLE
    # Home was away for this cell, too: the other may only be about to ask.
    assert share(LEASE_S + USED_S + 1, asking_s=LEASE_S - 1) == 0


def test_without_home_a_cell_goes_on_with_an_equal_part_at_most() -> None:
    assert share_without_home(report(share=WHOLE), 2, 1.0) is None
    assert share_without_home(report(share=WHOLE), 2, LEASE_S) == WHOLE // 2
    assert share_without_home(report(share=0), 2, LEASE_S) == 0
    assert share_without_home(report(share=0), 2, 3 * LEASE_S + USED_S) == WHOLE // 2
    parts = share_without_home(report(share=WHOLE, requests=7), 2, LEASE_S)
    assert parts is not None
    assert parts * 7 // WHOLE == 3


@pytest.mark.parametrize(
    ("said", "had", "ago_s", "asks"),
    [
        (report(waits=True), Share(0, 0), 0.5, True),
        (report(waits=True, share=WHOLE), Share(WHOLE, WHOLE), 1.0, False),
        (report(waits=True, share=WHOLE), Share(WHOLE, WHOLE), 5.0, True),
        (report(share=10, used=5), Share(10, 10), 4.0, False),
        (report(share=10, used=5), Share(10, 10), 5.0, True),
        (report(), Share(0, 0), 1e9, False),
        (report(), Share(0, 10), 5.0, True),
        (report(), None, float("inf"), True),
    ],
)
def test_home_is_asked_where_it_may_change_something(
    said: ShareReport, had: Share | None, ago_s: float, asks: bool
) -> None:
    assert is_due(said, had, ago_s) is asks


@pytest.mark.parametrize("seed", range(20))
def test_what_cells_may_use_is_never_more_than_the_whole(seed: int) -> None:
    """Cells ask, and die, in any order: what each has been given, or has used of it within the window, is added up."""
    random, names = Random(seed), "abc"
    requests = random.choice([None, 1, 3, 10, 60])
    has: dict[str, int] = dict.fromkeys(names, 0)
    used: dict[str, int] = dict.fromkeys(names, 0)
    rows: dict[str, ShareRow] = {}
    for turn in range(400):
        cell = random.choice(names)
        if random.random() < 0.2:  # what it took counts no more
            used[cell] = 0
        used[cell] = max(used[cell], random.choice([0, has[cell] // 2, has[cell]]))
        asks = report(share=has[cell], used=used[cell], waits=random.random() < 0.6, requests=requests)
        others = [row for name, row in rows.items() if name != cell]
        share = decide_share(cell, asks, others, cells=2, asking_s=99.0, turn=turn)
        rows[cell] = ShareRow(cell, share.held, asks.wanted, 1.0)
        if random.random() < 0.9:  # else it dies before it has put it
            has[cell] = share.share
        assert sum(max(has[name], used[name]) for name in names) <= WHOLE + len(names)
