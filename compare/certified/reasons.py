"""Why Apache Kafka and simulated brokers differ in a certified incident."""

from __future__ import annotations

from typing import Final

DIFFERENCES: Final[dict[str, str]] = {
    "acl_removed_under_eos": (
        "the machine was so busy that the clients' first requests took 6.6 s, and the right was"
        " taken from 5 s to 6.5 s, before there was a transaction"
    ),
    "hanging_transaction": (
        "Kafka's transaction hangs, too, but the run does not know open transactions of a real"
        " Kafka: it waits for the reader that the transaction stops, and does not judge what the"
        " reader never sees"
    ),
    "rolling_restart_min_insync_three": (
        "there are no writes while any broker is down, and three JVMs start in turn, for 6 s each"
        " on the busy machine"
    ),
    "session_too_short": (
        "Kafka lets a client log in again once a second, whatever its other times are, and a"
        " session of 900 ms is one of 9 s at this pace, on both grounds"
    ),
}
"""The reason by incident.  tests/compare/test_certified.py fails if a difference has none, or if a
reason has no difference any more."""
