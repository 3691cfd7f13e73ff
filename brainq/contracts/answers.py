"""Answers that were collected from several cells, and lists that name the cells that did not answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Answers(Generic[R_co]):
    """The answers of several cells to one request.

    answers: pairs of a cell's name and its answer, in the order of the cells.
    away: the names of the cells that did not answer.
    """

    answers: tuple[tuple[str, R_co], ...]
    away: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[R_co, ...]:
        return tuple(answer for _, answer in self.answers)


class FromCells(tuple[R_co, ...]):
    """A list collected from all cells, in order.

    It is a tuple that also names the cells that did not answer (`away`).
    """

    away: tuple[str, ...] = ()

    @classmethod
    def of(cls, items: Iterable[R_co], away: Sequence[str] = ()) -> FromCells[R_co]:
        made = cls(items)
        made.away = tuple(away)
        return made


def listed(items: Iterable[T], found: Answers[Any]) -> tuple[T, ...]:
    """Return the items as a tuple that also names the cells that did not answer."""
    return FromCells.of(items, found.away)


def cells_away(listed: object) -> tuple[str, ...]:
    """Return the names of the cells whose items a list lacks, because they did not answer."""
    return listed.away if isinstance(listed, FromCells) else ()
