"""Metrics in OpenTelemetry's form. Needs the extra `otel`.

They are built from the existing counters: the SDK's own instruments would count everything a second time, and it has no
histogram that is read instead of pushed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.metrics import export
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from brainq.runtime.observe import telemetry_names as names
from brainq.runtime.observe.metrics.counters import Distribution, Series

_CUMULATIVE = export.AggregationTemporality.CUMULATIVE
_UNKNOWN: Any = None  # the minimum and the maximum are not kept


def otlp_data(series: Sequence[Series], resource: Resource, began_ns: int, now_ns: int) -> export.MetricsData:
    """Return the data of an exporter, cumulative since `began_ns` in wall time."""
    metrics = [_metric(each, began_ns, now_ns) for each in series]
    scope = export.ScopeMetrics(
        InstrumentationScope(names.SCOPE, schema_url=names.SCHEMA_URL), metrics, names.SCHEMA_URL
    )
    return export.MetricsData([export.ResourceMetrics(resource, [scope], names.SCHEMA_URL)])


def _metric(series: Series, began_ns: int, now_ns: int) -> export.Metric:
    metric = series.metric
    data: export.Sum | export.Gauge | export.Histogram
    match metric.kind:
        case "counter":
            data = export.Sum(_numbers(series, began_ns, now_ns), _CUMULATIVE, is_monotonic=True)
        case "gauge":
            data = export.Gauge(_numbers(series, now_ns, now_ns))
        case "histogram":
            points = [
                _distribution(series, labels, distribution, began_ns, now_ns)
                for labels, distribution in series.distributions.items()
            ]
            data = export.Histogram(points, _CUMULATIVE)
    return export.Metric(metric.otel_name, metric.help, metric.unit, data)


def _numbers(series: Series, began_ns: int, now_ns: int) -> list[export.NumberDataPoint]:
    return [
        export.NumberDataPoint(_attributes(series, labels), began_ns, now_ns, float(value))
        for labels, value in series.values.items()
    ]


def _distribution(
    series: Series, labels: tuple[str, ...], distribution: Distribution, began_ns: int, now_ns: int
) -> export.HistogramDataPoint:
    counts = [round(count) for count in distribution.counts]
    return export.HistogramDataPoint(
        _attributes(series, labels),
        began_ns,
        now_ns,
        sum(counts),
        distribution.total,
        counts,
        series.metric.bounds,
        _UNKNOWN,
        _UNKNOWN,
    )


def _attributes(series: Series, labels: tuple[str, ...]) -> dict[str, str]:
    """Return the attributes. An empty one (`error.type` of a success) is left out, as the conventions require."""
    named = zip(series.metric.attributes, labels, strict=True)
    return {attribute: value for attribute, value in named if value}
