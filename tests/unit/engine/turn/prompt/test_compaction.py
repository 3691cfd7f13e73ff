"""The compaction of a conversation, and where it is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.contracts.message import Message
from brainq.engine.models.asking.bill import Allowance
from brainq.engine.turn.prompt.compaction import (
    CRITICAL,
    MAX_STEP_MESSAGES,
    MIN_SUMMARY_TOKENS,
    TARGET_SHARE,
    WARNING,
    Compaction,
    ContextCompactor,
    ContextTracker,
    should_compact,
)
from brainq.engine.turn.prompt.compaction_cut import HistoryCut, cut_history, newest_user_message, unread_from
from brainq.engine.turn.prompt.summary import summary_message
from brainq.runtime.text.estimate import estimate_messages
from tests.unit.engine.turn.conversations import (
    TURN,
    Rules,
    answer,
    asked,
    asks,
    fails_always,
    free,
    histories,
    pairs,
    result,
    says_always,
    steps,
    unhurried,
    user,
)

# Compaction: what a shorter history keeps, whoever wrote its summary.


QUESTION = user("the question")
IT_WAS_SO = says_always("It was so.")


def compact(
    messages: list[Message],
    *,
    rules: Rules | None = IT_WAS_SO,
    window: int = 4_000,
    fixed: int = 100,
    known: tuple[int, int] = (0, 0),
    timeout_s: float = 100,
) -> Compaction | None:
    return ContextCompactor(asked(rules), Allowance(free), lambda tool: tool != "look").compact(
        messages,
        turn_id=TURN,
        tracker=ContextTracker.from_state(window, known),
        fixed_estimate=fixed,
        timeout_s=timeout_s,
        session_id="s1",
        step=9,
    )


def test_older_steps_give_way_to_a_summary() -> None:
    history = [QUESTION, *steps(20, 600), asks(21, "send", to="Ann"), result(21, 0, "sent"), *steps(1, 600, 22)]
    made = compact(history)
    assert made is not None
    assert made.summary is not None
    new = made.applied(history)
    assert new == (made.summary, QUESTION, *history[made.drop :])
    assert (made.items, made.method) == ((made.summary, QUESTION), "model")
    assert "\nIt was so.\n" in made.summary.content
    assert made.archive == tuple(history[: made.drop])
    assert made.tokens_before == 100 + estimate_messages(history)
    assert made.tokens_after == 100 + estimate_messages(new) <= 4_000 * TARGET_SHARE
    assert made.spend is not None
    assert (made.spend.kind, made.spend.step) == ("compaction", 9)


def test_a_change_stays_known_over_several_compactions() -> None:
    history = [QUESTION, asks(1, "send", to="Ann"), result(1, 0, "sent as M1"), *steps(20, 600, first=2)]
    for first in (100, 200, 300):
        made = compact(history)
        assert made is not None
        assert made.summary is not None
        assert made.summary.content.count('- send({"to": "Ann"}) -> ok: sent as M1\n') == 1
        history = [*made.applied(history), *steps(20, 600, first=first)]


@pytest.mark.parametrize("rules", [None, says_always(""), fails_always("timeout")])
def test_it_happens_without_a_model_too(rules: Rules | None) -> None:
    history = [QUESTION, *steps(30, 600)]
    made = compact(history, rules=rules)
    assert made is not None
    assert made.summary is not None
    assert made.method == "rules"
    assert "It called look(" in made.summary.content
    assert made.tokens_after <= 2_000


def test_dense_text_is_cut_deeper() -> None:
    history = [QUESTION, *steps(30, 600)]
    plain, dense = compact(history), compact(history, known=(2_000, 1_000))
    assert plain is not None
    assert dense is not None
    assert dense.drop > plain.drop
    assert dense.tokens_after <= 2_000


def test_a_result_that_does_not_fit_is_cut() -> None:
    history = [QUESTION, *steps(3, 400), asks(4, "look", "look"), result(4, 0, "y" * 40_000), result(4, 1, "short")]
    made = compact(history)
    assert made is not None
    assert made.summary is not None
    assert made.drop == len(history)
    new = made.applied(history)
    assert new[:2] == (made.summary, QUESTION)
    assert new[2] == history[-3]
    assert "characters or more left out" in new[3].content
    assert new[4].content == "short"
    assert made.archive == tuple(history), "what was cut is archived whole"
    assert 4_000 * TARGET_SHARE < made.tokens_after <= 4_000 * WARNING + 20


def test_a_first_result_that_does_not_fit_is_cut_without_a_summary() -> None:
    history = [QUESTION, asks(1, "look"), result(1, 0, "y" * 40_000)]
    made = compact(history)
    assert made is not None
    assert (made.summary, made.method, made.spend) == (None, "shortened", None)
    assert made.items == made.applied(history)
    assert [message.role for message in made.items] == ["user", "assistant", "tool"]
    assert made.tokens_after <= 4_000 * WARNING + 20
    assert compact(list(made.items)) is None


def test_nothing_can_be_done_about_a_long_question() -> None:
    assert compact([user("x" * 40_000), *steps(1, 40)]) is None


def test_too_little_to_drop_is_left_alone() -> None:
    assert compact([user("x" * 9_000), *steps(2, 40)]) is None


@pytest.mark.parametrize(
    ("now", "auto", "tried_at", "messages", "due"),
    [
        (849, True, 0, 10, False),
        (850, True, 0, 10, True),
        (850, False, 0, 10, False),
        (900, True, 860, 10, False),
        (904, True, 860, 10, True),
        (900, True, 500, 10, True),
        (100, True, 90, MAX_STEP_MESSAGES, True),
        (100, False, 0, MAX_STEP_MESSAGES, False),
    ],
)
def test_when(now: int, auto: bool, tried_at: int, messages: int, due: bool) -> None:
    assert should_compact(now, 1000, auto, tried_at, messages) == due


def check(history: list[Message], made: Compaction, window: int, fixed: int) -> None:
    """What holds for every compaction."""
    new = made.applied(history)
    # the arithmetic, as the history's list is changed
    assert new == (*made.items, *history[made.drop :])
    # no pair is parted: each result that stays follows its call, each call that stays keeps its results
    before = {
        (history[call].turn, history[call].step, history[answered].call_id, history[call].role)
        for call, answered in pairs(history)
        if history[call].turn == history[answered].turn
    }
    stayed = {(m.turn, m.step, call.id, m.role) for m in new for call in m.calls}
    answered_still = {
        (new[call].turn, new[call].step, new[answered].call_id, new[call].role) for call, answered in pairs(new)
    }
    assert before & stayed <= answered_still
    # what may never be dropped
    newest = newest_user_message(history)
    assert newest is None or history[newest] in new
    assert [m for m in new if m.role == "system"] == [m for m in history if m.role == "system"]
    # what no model has read (a summary behind it comes of an orphan before that summary only)
    summed = max((i + 1 for i, m in enumerate(history) if m.note_kind == "summary"), default=0)
    unread = history[max(summed, unread_from(history)) :]
    assert [(m.role, m.call_id) for m in new[len(new) - len(unread) :]] == [(m.role, m.call_id) for m in unread]
    # one summary at most, at the front
    assert all(message.note_kind != "summary" for message in new[1:]) or made.summary is None
    # what left is archived, but for summaries
    kept = [*made.front, *history[made.drop :]]
    assert all(m in made.archive or m in kept or m.note_kind == "summary" for m in history)
    assert all(message.note_kind != "summary" for message in made.archive)
    # shorter
    assert made.tokens_after < made.tokens_before
    assert made.tokens_after == fixed + estimate_messages(new)


@unhurried
@given(
    histories(), st.integers(300, 4_000), st.integers(0, 200), st.sampled_from([None, says_always("So it was. " * 99)])
)
def test_every_compaction(history: list[Message], window: int, fixed: int, rules: Rules | None) -> None:
    made = compact(history, rules=rules, window=window, fixed=fixed)
    if made is not None:
        check(history, made, window, fixed)


@unhurried
@given(histories(), st.integers(600, 3_000), st.lists(st.integers(0, 1_500), min_size=1, max_size=12))
def test_compacting_again_and_again(history: list[Message], window: int, sizes: list[int]) -> None:
    """After each step: under the limit wherever there was something to drop or to cut."""
    fixed, tried_at = 50, 0
    for step, size in enumerate(sizes, 20):
        history = [*history, *steps(1, size, first=step)]
        now = fixed + estimate_messages(history)
        if not should_compact(now, window, True, tried_at):
            assert now < window * CRITICAL * 1.05 or tried_at >= window * CRITICAL
            continue
        made = compact(history, window=window, fixed=fixed, rules=None)
        tried_at = now if made is None else made.tokens_after
        if made is not None:
            check(history, made, window, fixed)
            history = list(made.applied(history))
        pinned = [history[i] for i in {newest_user_message(history) or 0}]
        opening = next(m for m in history if m.role == "user" and m.turn == TURN and not m.note_kind)
        least = fixed + estimate_messages([*pinned, opening, *history[unread_from(history) :]])
        if least + 2 * MIN_SUMMARY_TOKENS + 200 < window * TARGET_SHARE:
            assert fixed + estimate_messages(history) <= window * CRITICAL


def test_compaction_converges() -> None:
    history = [QUESTION, *steps(40, 600)]
    made = compact(history)
    assert made is not None
    again = compact(list(made.applied(history)))
    assert again is None
    assert cut_history(made.applied(history), turn_id=TURN, keep_tokens=2_000) is None


# Where a history is cut.


SUMMARY = summary_message("what was", [], "rules", 300)


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
