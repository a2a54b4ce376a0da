"""The samples of clusters as Prometheus' text.

Owns: families and labels.  Never: reads a cluster (reading.py).
Kafka: the JMX exporter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import generate_latest
from prometheus_client.core import Metric

from kcluster.web.metrics.names import METRICS, MetricKind
from kcluster.web.metrics.reading import Sample


def exposition(clusters: Mapping[str, Iterable[Sample]]) -> bytes:
    """The text for the samples of each cluster, by its id."""
    families = {
        name: Metric(name, metric.words, metric.kind.value) for name, metric in METRICS.items()
    }
    for cluster, samples in clusters.items():
        for sample in samples:
            _add(families[sample.name], cluster, sample)
    return generate_latest(_Collected([x for x in families.values() if x.samples]))


def _add(family: Metric, cluster: str, sample: Sample) -> None:
    metric = METRICS[sample.name]
    labels = {"cluster": cluster, "broker": str(sample.broker)}
    labels |= zip(metric.labels, sample.labels, strict=True)
    name = sample.name
    if metric.kind is MetricKind.COUNTER:
        name += "_total"
    elif sample.quantile == -1:
        name += "_count"
    elif sample.quantile is not None:
        labels["quantile"] = f"{sample.quantile:g}"
    family.add_sample(name, labels, sample.value)


class _Collected:
    """The samples in the form in which prometheus_client reads a registry."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Any:
        return self._families
