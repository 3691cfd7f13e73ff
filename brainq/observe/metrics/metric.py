"""One metric: its name, what it counts, its labels and buckets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from brainq.observe import telemetry_names as names

Kind = Literal["counter", "gauge", "histogram"]
NO_BOUND = "inf"
"""The name of a histogram's last bucket."""
_ENDINGS = {"s": "_seconds", "By": "_bytes", "USD": "_usd"}


def label_of(attribute: str) -> str:
    """An attribute's name as Prometheus writes it."""
    return attribute.replace(".", "_")


_ATTRIBUTES = {
    label_of(attribute): attribute
    for attribute in (
        *(names.OPERATION, names.PROVIDER, names.REQUEST_MODEL, names.TOKEN_TYPE, names.ERROR_TYPE),
        names.PURPOSE,
    )
}


@dataclass(frozen=True, slots=True)
class Metric:
    """
    name     as Prometheus writes it, base unit included; a counter's without its `_total`
    labels   names of the labels, in the order in which their values are given
    bounds   of a histogram: upper bounds of its buckets but for the last, which has none
    always   label values that are shown also while nothing was counted: a rate begins with the second look at a series
    otel     its name by OpenTelemetry's conventions, where they have one; else it is made of `name`
    unit     as OpenTelemetry writes it
    buckets  of a histogram: names of its buckets, in their order
    """

    kind: Kind
    name: str
    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    always: tuple[tuple[str, ...], ...] = ()
    otel: str = ""
    unit: str = "1"
    buckets: tuple[str, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "buckets", (*(f"{bound:g}" for bound in self.bounds), NO_BOUND))

    @property
    def otel_name(self) -> str:
        """As OpenTelemetry sends it: without the unit, which is told apart."""
        bare = self.name.removesuffix(_ENDINGS.get(self.unit, ""))
        return self.otel or bare.replace("_", ".", 1)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The labels as OpenTelemetry calls them."""
        return tuple(_ATTRIBUTES.get(label, label) for label in self.labels)

    @property
    def shown(self) -> str:
        """As it is asked for in Prometheus, but for a histogram's endings."""
        return f"{self.name}_total" if self.kind == "counter" else self.name
