"""One of something for each brain of a deployment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class ByBrain(Generic[T]):
    """By the brains' names. The first is the default brain's, which has the turns that name none."""

    def __init__(self, items: Mapping[str, T]) -> None:
        """`items` has one at least."""
        self._items = dict(items)
        self._default = next(iter(self._items.values()))

    @property
    def names(self) -> tuple[str, ...]:
        """The default brain's first."""
        return tuple(self._items)

    @property
    def default(self) -> T:
        return self._default

    def of(self, name: str | None) -> T | None:
        """That of the brain of this name, or of the default brain; None for a brain that is not here."""
        return self._items.get(name) if name else self._default

    def each(self, make: Callable[[T], U]) -> ByBrain[U]:
        """What `make` makes of each."""
        return ByBrain({name: make(item) for name, item in self._items.items()})

    def __iter__(self) -> Iterator[T]:
        return iter(self._items.values())

    def __len__(self) -> int:
        return len(self._items)
