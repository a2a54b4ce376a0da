"""Why Apache Kafka and simulated brokers differ in a certified incident."""

from __future__ import annotations

from typing import Final

DIFFERENCES: Final[dict[str, str]] = {}
"""The reason by incident.  tests/compare/test_certified.py fails if a difference has none, or if a
reason has no difference any more."""

_UNCLEAN: Final = (
    "a broker that was out of the ISR was elected. The runs had a load average of 10 to 20 on two"
    " cores, and a session of 900 ms: JVMs that wait for their turn leave the ISR, and simulated"
    " brokers do not"
)
RANDOM_DIFFERENCES: Final[dict[str, str]] = {
    "min.insync.replicas=1, idempotent": (
        "the first batches of a producer were refused by an old leader while a later one was under"
        " way to the new leader, which takes any sequence number of a producer that it does not"
        " know; the latencies of simulated links are equal, so ours sends them in order again"
    ),
    "unclean elections": _UNCLEAN,
    "unclean elections, idempotent": _UNCLEAN,
}
"""The reason by the settings of random schedules, where ours never had an anomaly of Kafka's."""
