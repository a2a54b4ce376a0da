"""A real Kafka for the command line: `--ground kafka:4.3.1`, `--kafka-home DIR`.

Owns: reading these options, saying on stderr what takes long.  Never: is loaded without them.
Kafka: kafka-server-start.sh.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kcluster.apache_kafka.installation import Installation, find_installation, version_for
from kcluster.cli.errors import CommandError
from kcluster.cli.up_options import UpOptions
from kcluster.config.topology.model import Topology
from kcluster.mirror.cluster import KafkaCluster
from kcluster.mirror.passing import why_no_proxy

KAFKA: Final = "kafka"


def started_by(options: UpOptions, topology: Topology, log: Callable[[str], None]) -> KafkaCluster:
    """The real Kafka that the options of `up` ask for; it does not run yet."""
    no_proxy = "leave out --no-proxy" if options.no_proxy else why_no_proxy(topology)
    if options.trace_requests and no_proxy is not None:
        raise CommandError(f"--trace-requests needs a proxy before the brokers; {no_proxy}", 2)
    installation = installation_of(topology, options.ground, options.kafka_home)
    return KafkaCluster(
        topology,
        installation=installation,
        with_network=None if options.network is None else options.network == "yes",
        with_proxy=False if options.no_proxy else None,
        log=log,
        record=not options.no_record,
    )


def installation_of(topology: Topology, ground: str | None, kafka_home: str | None) -> Installation:
    """The installation for a topology.  `ground`: `kafka` or `kafka:VERSION`."""
    word, _, version = (ground or KAFKA).partition(":")
    if word != KAFKA:
        raise CommandError(f"--ground {ground}: must be {KAFKA} or {KAFKA}:VERSION", 2)
    home = None if kafka_home is None else Path(kafka_home)
    wanted = version or (version_for(topology) if home is None else None)
    return find_installation(wanted, home, _say)


def _say(line: str) -> None:
    print(f"kcluster: {line}", file=sys.stderr)
