"""The pages that commands print: tables, styles, the fleet, scale, timelines and stops."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from brainq import Brain
from brainq import Effect as stops_Effect
from brainq.cli.commands.stops import unmet_note
from brainq.cli.output import EFFECT_STYLES, STATUS_STYLES, ago, clean, counted, duration, short
from brainq.cli.pages.fleet import print_fleet, print_scale
from brainq.cli.pages.layout import PageTable, fact, fit_columns, key, words
from brainq.cli.pages.people import approvals_table
from brainq.cli.pages.sessions import turns_table
from brainq.cli.pages.timeline import print_timeline, render_bar
from brainq.contracts.event import TimelineBar, TimelineSpan, TurnTimeline
from brainq.contracts.fleet import (
    Fleet,
    FleetBrain,
    FleetCapacity,
    FleetLanes,
    FleetQueue,
    FleetRedis,
    FleetScale,
    FleetSweeper,
    FleetTurns,
    FleetWorker,
    GivenUp,
    Pool,
    PoolScale,
    StopCandidate,
)
from brainq.contracts.history import ListedTurn
from brainq.contracts.people import Approval
from brainq.contracts.status import Effect, TraceStatus, TurnState
from brainq.contracts.stop import checked_stop
from brainq.engine.brain.brains import Brains, read_brains
from brainq.errors import BrainNotLoaded

# Tables fit the terminal and never cut what must be typed.


TURN = "01m81hbqp43xwy47dkkxt49y9b"
NOW = datetime.now(UTC)


def printed(table: PageTable, width: int) -> list[str]:
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(table)
    lines = [line.rstrip() for line in capture.get().splitlines()]
    assert max(map(len, lines)) <= width
    return lines


def test_the_least_worth_is_left_out_first_and_words_take_the_room_that_is_left() -> None:
    columns = (key("turn"), fact("took", 1), fact("when", 2), words("note", 3, least=10))
    assert fit_columns(columns, (26, 6, 14, 72), 200) == [26, 6, 14, 72]
    assert fit_columns(columns, (26, 6, 14, 72), 80) == [26, 6, 14, 28]
    assert fit_columns(columns, (26, 6, 14, 72), 60) == [26, 0, 14, 16]
    assert fit_columns(columns, (26, 6, 14, 72), 40) == [26, 0, 0, 12]
    assert fit_columns(columns, (26, 6, 14, 72), 30) == [26, 0, 0, 0]


def test_a_column_without_content_is_left_out_and_keys_are_folded_before_they_are_cut() -> None:
    assert fit_columns((key("a"), fact("b", 1)), (5, 0), 80) == [5, 0]
    assert fit_columns((key("a"), key("b")), (60, 30), 80) == [48, 30]


def turn(session: str = "monday", state: str = "completed", note: str = "") -> ListedTurn:
    return ListedTurn(
        turn_id=TURN,
        session_id=session,
        request_key=TURN,
        state=state,
        note=note,
        accepted_at=NOW - timedelta(minutes=4, seconds=5),
        ended_at=NOW,
    )


def test_the_list_shows_the_message_and_small_money_as_it_is() -> None:
    row = turn().model_copy(update={"message": "count the\napples", "cost_usd": 0.000034})
    (_, line) = [line for line in printed(turns_table([row]), 200) if line.strip()][:2]
    assert "count the apples" in line
    assert "$0.000034" in line
    assert "0.0000 " not in line


@pytest.mark.parametrize("width", [80, 120, 10_000])
def test_the_list_keeps_turn_session_and_state_at_any_width(width: int) -> None:
    lines = printed(turns_table([turn(), turn("customer-4711", "failed", "a long error " * 8)]), width)
    text = "\n".join(lines)
    assert text.count(TURN) == 2
    assert "customer-4711" in text
    assert "completed" in text
    assert "failed" in text
    assert "…" not in text.split(TURN)[1]


@pytest.mark.parametrize("width", [80, 120, 10_000])
def test_approvals_keep_the_id_that_is_typed_and_the_arguments(width: int) -> None:
    approval = Approval(
        id=f"{TURN}.c12-10",
        turn_id=TURN,
        session_id="monday",
        call_id="c12-10",
        tool="charge_the_customer",
        effect=Effect.DESTRUCTIVE,
        arguments={"order": "4711", "cents": 129900},
        args_hash="h",
        reason="more than 100 dollars are asked about",
        state="pending",
        created_at=NOW,
        expires_at=NOW + timedelta(hours=1),
    )
    text = "\n".join(printed(approvals_table([approval]), width))
    assert f"{TURN}.c12-10" in text
    assert "charge_the_customer" in text
    assert "4711" in text


# Durations and safe text.


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1250, "1.2 s"),
        (59_949, "59.9 s"),
        (60_000, "1 min"),
        (245_000, "4 min 05 s"),
        (7_800_000, "2 h 10 min"),
        (273_600_000, "3 d 4 h"),
    ],
)
def test_durations_have_the_unit_a_person_would_use(ms: int, said: str) -> None:
    assert duration(ms) == said


def test_an_instant_is_told_by_its_distance() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert ago(now - timedelta(seconds=90), now) == "1 min 30 s ago"
    assert ago(now + timedelta(seconds=5), now) == "0 ms ago"


def test_text_is_cut_to_one_line_of_its_width() -> None:
    assert short("a\nb\tc", 10) == "a b c"
    assert short("x" * 20, 10) == "x" * 9 + "…"
    assert clean("a\x1b[31m\r\nb") == "a\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}\nb"


def test_numbers_and_nouns_agree() -> None:
    assert [counted(1, "call"), counted(2, "call"), counted(2, "try", "tries")] == ["1 call", "2 calls", "2 tries"]


def test_every_effect_and_status_has_a_colour() -> None:
    assert {effect.value for effect in Effect} <= EFFECT_STYLES.keys()
    assert {status.value for status in TraceStatus} | {state.value for state in TurnState} <= STATUS_STYLES.keys()


# `brainq fleet` in a terminal.


def test_the_page_says_what_runs_and_what_does_not() -> None:
    fleet = Fleet(
        at_ms=1,
        pools=(
            Pool(name="serial", queues=("brainq.tools.network",)),
            Pool(
                name="parallel",
                queues=("brainq.tools.read_only",),
                workers=(FleetWorker(name="parallel@h", pool="parallel", threads=32, busy=3),),
            ),
        ),
        queues=(FleetQueue(name="brainq.turns", pool="coordinator", depth=7, oldest_age_s=90),),
        lanes=FleetLanes(held=2, waiting=1, lapsed=1),
        turns=FleetTurns(active=2, parked=1, is_whole=False, approvals=1),
        room=FleetCapacity(size=125, share=88, live=2, brains=(FleetBrain(name="lab", cap=2, live=1),)),
        sweeper=FleetSweeper(last_round_s=0.5, overdue_s=20.0),
        given_up=GivenUp(finalizer_steps=3),
        redis=FleetRedis(version="7.0.1", used_bytes=2**21, max_bytes=2**30, policy="noeviction", keeps_on_disk=True),
    )
    out = StringIO()
    print_fleet(Console(file=out, width=100, color_system=None), fleet)
    said = " ".join(out.getvalue().split())
    for part in (
        "turns 2 active, 1 parked, counting only the newest turns",
        "room 2 of 125 live, 88 per tenant; brain lab 1 of 2",
        "people 1 approval pending",
        "lanes 2 held, 1 call waiting, 1 lapsed",
        "sweeper last sweep 500 ms ago; the oldest check is 20.0 s",
        "abandoned 3 finalizer steps",
        "redis 7.0.1, 2.0 MiB of 1,024 MiB, noeviction",
        "serial 0 0 of 0",
        "parallel 1 3 of 32 parallel@h",
        "turns 7 1 min 30 s",
    ):
        assert part in said


# `brainq scale` in a terminal.


def pool(name: str, wanted: int, *workers: StopCandidate, **facts: int) -> PoolScale:
    draining = sum(each.draining for each in workers)
    counts: dict[str, Any] = {"queued": 0, "running": 0, "threads": 8, "load": 0, **facts}
    return PoolScale(
        pool=name, wanted=wanted, workers=len(workers) - draining, draining=draining, stop_first=workers, **counts
    )


def test_the_page_has_a_row_a_pool_and_names_those_that_are_too_many() -> None:
    drains = StopCandidate(name="serial@c", busy=1, draining=True)
    idle, busy = StopCandidate(name="serial@a", busy=0), StopCandidate(name="serial@b", busy=3)
    scale = FleetScale(
        at_ms=1,
        wanted=4,
        pools=(
            pool("parallel", 3, StopCandidate(name="parallel@a", busy=8), queued=9, running=8, oldest_age_s=75),
            pool("serial", 1, drains, idle, busy, running=3),
        ),
    )
    out = StringIO()
    print_scale(Console(file=out, width=120), scale)
    lines = [line.split() for line in out.getvalue().splitlines()]
    parallel = next(line for line in lines if line[:1] == ["parallel"])
    assert parallel == ["parallel", "3", "1", "9", "8,", "8", "a", "worker", *parallel[8:]]
    assert "parallel@a" not in out.getvalue(), "none is too many"
    (serial,) = [line for line in out.getvalue().splitlines() if line.startswith("serial")]
    assert serial.split()[:3] == ["serial", "1", "2"]
    assert "serial@c (draining), serial@a" in serial
    assert "serial@b" not in serial


# A timeline in a terminal.


def span(kind: str, from_ms: int, to_ms: int | None) -> TimelineSpan:
    return TimelineSpan.model_validate({"kind": kind, "from_ms": from_ms, "to_ms": to_ms})


def test_a_bar_is_drawn_to_scale() -> None:
    call = TimelineBar(
        id="call:c1-0",
        kind="call",
        from_ms=100,
        to_ms=400,
        spans=(span("parked", 100, 200), span("dispatched", 200, 250), span("running", 250, 400)),
    )
    assert render_bar(call, 500, 500, 10) == "  ░░▒███  "
    assert render_bar(call.model_copy(update={"to_ms": None}), 400, 400, 8) == "  ░░▒██>"
    assert render_bar(TimelineBar(id="q", kind="queued", from_ms=0, to_ms=0), 500, 500, 5) == "█    "


def test_a_line_says_what_it_is_how_long_it_took_and_how_it_ended() -> None:
    bars = (
        TimelineBar(id="step:1", kind="step", name="step 1", from_ms=0, to_ms=90, pool="coordinator", outcome="calls"),
        TimelineBar(
            id="call:c1-0",
            kind="call",
            name="look\x1b[31m",
            call_id="c1-0",
            from_ms=90,
            effect=Effect.READ_ONLY,
            spans=(span("running", 90, None),),
        ),
        TimelineBar(id="finalizer:memory", kind="finalizer", name="memory", from_ms=90, to_ms=95, is_exact=False),
    )
    out = StringIO()
    timeline = TurnTimeline(turn_id="turn-1", session_id="s1", now_ms=2090, bars=bars)
    print_timeline(Console(file=out, width=120, color_system=None), timeline)
    axis, step, call, final, legend = out.getvalue().splitlines()
    assert axis.split() == ["0", "2.1", "s"]
    assert step.split()[:2] + step.split()[-3:] == ["step", "1", "90", "ms", "calls"]
    assert call.split()[0] == "c1-0"
    assert ">" in call
    assert call.endswith("2.0 s")
    assert "\x1b" not in call
    assert final.split()[-2:] == ["~5", "ms"]
    assert "parked" in legend


# A stop of a name that nothing has says so: a misspelt one stops nothing, and reads as if it did.


desk = Brain("desk", "offline:rules")


@desk.tool(effect=stops_Effect.NETWORK)
def send_email() -> None:
    """Send it."""


@pytest.mark.parametrize(
    ("kind", "name", "note"),
    [
        ("tool", "send_email", ""),
        ("tool", "send_emial", "have no tool send_emial; did you mean send_email? The stop remains active"),
        ("brain", "desk", ""),
        ("brain", "shop", "have no brain shop. The stop remains active"),
        ("server", "github", "have no server github. The stop remains active"),
        ("model", "gpt-5", ""),
        ("tenant", "acme", ""),
    ],
)
def test_a_name_that_no_brain_has_is_told(monkeypatch: pytest.MonkeyPatch, kind: str, name: str, note: str) -> None:
    def present(_: str) -> Brains:
        return read_brains(desk)

    monkeypatch.setattr("brainq.engine.brain.brains.load_brains", present)
    said = unmet_note(checked_stop(kind, name))
    assert note in said
    assert bool(said) is bool(note)


def test_where_no_brain_is_here_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(reference: str) -> Brains:
        raise BrainNotLoaded(reference)

    monkeypatch.setattr("brainq.engine.brain.brains.load_brains", absent)
    assert unmet_note(checked_stop("tool", "send_emial")) == ""
