"""What is done differently, or refused, on a real Kafka."""

from __future__ import annotations

from kcluster.mirror.limits import KafkaLimit, RefusedOnKafka
from kcluster.mirror.verbs import combined
from kcluster.network.shapes import LinkShape


def test_combined__without_shapes_it_is_the_latency_of_the_link() -> None:
    assert combined(5_000, []) == LinkShape(latency_us=5_000)


def test_combined__delays_add_up_and_the_narrowest_rate_wins() -> None:
    shapes = [LinkShape(latency_us=20_000, bytes_per_s=9_000), LinkShape(bytes_per_s=4_000)]
    found = combined(1_000, shapes)
    assert (found.latency_us, found.bytes_per_s) == (21_000, 4_000)


def test_combined__a_message_must_survive_each_loss() -> None:
    assert combined(0, [LinkShape(loss=0.5), LinkShape(loss=0.5)]).loss == 0.75


def test_combined__the_distribution_is_that_of_the_jitter() -> None:
    shapes = [LinkShape(jitter_us=10, distribution="uniform"), LinkShape(latency_us=1)]
    assert combined(0, shapes).distribution == "uniform"


def test_refusal__is_one_line_with_the_reason() -> None:
    assert "\n" not in str(RefusedOnKafka(KafkaLimit("a rule", "a rule needs a proxy")))
