"""Where a history is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.contracts.message import Message
from brainq.engine.turn.prompt.compaction_cut import HistoryCut, cut_history, newest_user_message, unread_from
from brainq.engine.turn.prompt.summary import summary_message
from brainq.runtime.text.estimate import estimate_messages
from tests.unit.engine.turn.conversations import TURN, answer, asks, histories, pairs, result, steps, unhurried, user

SUMMARY = summary_message("what was", [], "rules", 300)
QUESTION = user("the question")


def split(messages: list[Message], keep: int, keep_messages: int = 500) -> HistoryCut | None:
    return cut_history(messages, turn_id=TURN, keep_tokens=keep, keep_messages=keep_messages)


def test_the_question_moves_to_the_front() -> None:
    old, new = steps(3, 400), steps(2, 400, first=4)
    found = split([QUESTION, *old, *new], estimate_messages([QUESTION, *new]))
    assert found == HistoryCut(7, (QUESTION,), tuple(old), tuple(new))


def test_older_turns_go_first() -> None:
    old = [user("before", "t-0"), answer("then", "t-0")]
    new = [QUESTION, *steps(2, 400)]
    found = split([*old, *new], estimate_messages(new))
    assert found == HistoryCut(2, (), tuple(old), tuple(new))


def test_results_that_nobody_has_read_stay_whatever_their_size() -> None:
    old, new = steps(1, 40), [asks(2, "look", "look"), result(2, 0, "x" * 9000), result(2, 1, "y" * 9000)]
    found = split([QUESTION, *old, *new], 10)
    assert found == HistoryCut(3, (QUESTION,), tuple(old), tuple(new))
    review = Message(role="user", content="note", turn=TURN, step=2, extra={"note": "reflection"})
    assert split([QUESTION, *old, *new, review], 10) == HistoryCut(3, (QUESTION,), tuple(old), (*new, review))


def test_notes_on_one_step_are_not_parted_nor_is_input_that_one_step_read() -> None:
    def noted(content: str, **extra: str) -> Message:
        return Message(role="user", content=content * 100, turn=TURN, step=1, extra={**extra})

    together = [noted("a", input="m1"), noted("b", input="m2")], [noted("c", note="n"), noted("d", note="n")]
    history = [QUESTION, *together[0], *steps(1, 400), *together[1], *steps(2, 400, first=2)]
    for keep in range(0, estimate_messages(history), 10):
        found = split(history, keep)
        assert found is not None
        for first, second in together:
            assert (first in found.tail) == (second in found.tail)


def test_an_earlier_summary_is_folded() -> None:
    old, new = steps(1, 40), steps(1, 40, first=2)
    found = split([SUMMARY, QUESTION, *old, *new], estimate_messages([QUESTION, *new]))
    assert found == HistoryCut(4, (QUESTION,), (SUMMARY, *old), tuple(new))


def test_a_summary_is_folded_wherever_it_stands() -> None:
    stray, new = answer("before", "t-0"), [QUESTION, *steps(2, 40)]
    found = split([stray, SUMMARY, *new], 100_000)
    assert found == HistoryCut(2, (), (stray, SUMMARY), tuple(new))


@pytest.mark.parametrize(
    "messages",
    [[], [QUESTION], [QUESTION, *steps(1, 4000)], [SUMMARY, QUESTION, *steps(1, 4000)], [SUMMARY]],
    ids=["empty", "question", "first step", "summarised", "summary"],
)
def test_nothing_to_drop(messages: list[Message]) -> None:
    assert split(messages, 10) is None


def test_what_fits_is_left_alone() -> None:
    assert split([QUESTION, *steps(9, 400)], 100_000) is None


def test_too_many_messages_are_cut_though_they_would_fit() -> None:
    found = split([QUESTION, *steps(20, 4)], 100_000, keep_messages=10)
    assert found is not None
    assert len(found.tail) == 10


def test_the_newest_user_message_is_no_note() -> None:
    notice = Message(role="user", content="[Notice from the runtime: ...]")
    review = Message(role="user", content="note", extra={"note": "reflection"})
    assert newest_user_message([QUESTION, answer("a"), review]) == 0
    assert newest_user_message([answer("a")]) is None
    # A notice carries no mark of its own, so the question is kept beside it.
    found = split([QUESTION, *steps(2, 400), notice, *steps(2, 400, first=3)], 10)
    assert found is not None
    assert found.front == (QUESTION, notice)


def test_what_is_unread() -> None:
    history = [QUESTION, *steps(2, 4)]
    assert unread_from(history) == 3
    assert unread_from([*history, answer("done"), user("and?")]) == 6
    assert unread_from([QUESTION]) == 0


@unhurried
@given(histories(), st.integers(0, 4_000))
def test_every_split(history: list[Message], keep: int) -> None:
    found = split(history, keep)
    if found is None:
        return
    # the arithmetic: what is dropped and what is put back are the oldest messages, in their order
    assert found.tail == tuple(history[found.drop :])
    oldest = history[: found.drop]
    front, dropped = list(found.front), list(found.dropped)
    assert len(front) + len(dropped) == len(oldest)
    assert sorted(map(id, [*front, *dropped])) == sorted(map(id, oldest))
    assert [m for m in oldest if any(m is f for f in front)] == front
    # what may never be dropped
    assert all(message.role != "system" for message in dropped)
    newest = newest_user_message(history)
    assert newest is None or newest >= found.drop or any(history[newest] is message for message in front)
    opening = next(m for m in history if m.role == "user" and m.turn == TURN)
    assert not any(opening is message for message in dropped)
    # pairs
    for call, answered in pairs(history):
        assert (call < found.drop) == (answered < found.drop)
    # earlier summaries are folded, and something beside them is dropped
    assert all(message.note_kind != "summary" for message in (*front, *found.tail))
    assert any(message.note_kind != "summary" for message in dropped)
    # as much as fits: the first cut, of those that may be made, that does
    folding = max((i + 1 for i, message in enumerate(history) if message.note_kind == "summary"), default=0)
    spans = pairs(history)
    legal = [
        cut for cut in range(folding, len(history) + 1) if not any(call < cut <= answered for call, answered in spans)
    ]
    may = [cut for cut in legal if cut <= unread_from(history)] or legal[:1]
    fits = [
        cut
        for cut in may
        if estimate_messages(m for i, m in enumerate(history) if i >= cut or any(m is f for f in front)) <= keep
    ]
    assert found.drop == (fits or may[-1:])[0]
