"""What Apache Kafka was seen to do with a scenario: the key `certified` of its file.

Owns: the key's form.  Never: plays a scenario; `make certify` does, and writes the key.
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from kcluster.checks.anomalies import ANOMALIES
from kcluster.config.files.fields import ListOf, OneOf, Whole, duration, text


class Certified(Struct, frozen=True):
    """What runs on Apache Kafka showed.  Of several runs, times are the median."""

    kafka: Annotated[str, text(), "The version of Apache Kafka."]
    date: Annotated[str, text(), "The day of the last run."]
    runs: Annotated[int, Whole(1), "How many runs there were."]
    outcome: Annotated[
        str, OneOf("verdict", ("valid", "invalid", "unknown")), "The verdict of each run."
    ]
    times: Annotated[
        str,
        OneOf("times", ("tenth", "kafka")),
        "The times of the brokers: a tenth of Kafka's defaults, or Kafka's.",
    ] = "tenth"
    anomalies: Annotated[
        tuple[str, ...], ListOf(OneOf("anomaly", tuple(ANOMALIES)), "anomalies"), "What was found."
    ] = ()
    detection_ms: Annotated[
        int | None, duration(), "From the first fault until the controller fenced its broker."
    ] = None
    election_ms: Annotated[
        int | None, duration(), "From the first fault that cost a leader until the next leader."
    ] = None
    writes_unavailable_ms: Annotated[
        int | None, duration(), "How long the worst partition could not be written."
    ] = None
