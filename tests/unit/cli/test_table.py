"""Tables fit the terminal and never cut what must be typed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from brainq.cli.pages.layout import PageTable, fact, fit_columns, key, words
from brainq.cli.pages.people import approvals_table
from brainq.cli.pages.sessions import turns_table
from brainq.contracts.history import ListedTurn
from brainq.contracts.people import Approval
from brainq.contracts.status import Effect

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
