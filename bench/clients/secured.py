"""The load of load.py by PLAINTEXT and by SASL_SSL: python -m bench.clients.secured BOOTSTRAP FILE.

Owns: the user and its rights, both rounds, the CPU that each takes.  Never: distinguishes systems.

BOOTSTRAP is of a plaintext listener whose clients may do everything.  FILE has the settings of a
librdkafka client that logs in, as JSON.  Prints the figures by their keys; those of CPU are ms per
MB, of the processes in --pids (`servers`) and of this one (`client`).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from bench.clients.load import RECORD_BYTES, Settings, acks, consume, produce
from bench.clients.topics import QUIET, WAIT_S, admin, make_topic
from bench.processes import cpu_s

ITERATIONS: Final = 4_096
TOPICS: Final = "bench-"
"""The beginning of the names that topics.py makes."""


def grant(bootstrap: str, user: str, password: str) -> None:
    """Create the user, who may use the topics under load and any group."""
    client = admin(bootstrap)
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ITERATIONS)
    upsertion = UserScramCredentialUpsertion(user, info, password.encode())
    rights = [
        AclBinding(
            kind,
            TOPICS,
            ResourcePatternType.PREFIXED,
            f"User:{user}",
            "*",
            AclOperation.ALL,
            AclPermissionType.ALLOW,
        )
        for kind in (ResourceType.TOPIC, ResourceType.GROUP)
    ]
    pending = [*client.alter_user_scram_credentials([upsertion]).values()]
    pending += client.create_acls(rights).values()
    for future in pending:
        future.result(WAIT_S)


class Meter:
    """CPU of the servers and of this process."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids

    def rate(self, prefix: str, megabytes: float, load: Callable[[], float]) -> dict[str, float]:
        """The figures of a load that returns its MB/s."""
        servers_s, client_s = cpu_s(self._pids), time.process_time()
        rate = load()
        return {
            prefix: rate,
            f"{prefix}_servers_ms_mb": (cpu_s(self._pids) - servers_s) * 1e3 / megabytes,
            f"{prefix}_client_ms_mb": (time.process_time() - client_s) * 1e3 / megabytes,
        }


def round_of(
    prefix: str, settings: Settings, topic: str, partitions: int, megabytes: int, meter: Meter
) -> dict[str, float]:
    """The figures of producing, then of consuming the same records."""
    count = megabytes * 1_000_000 // RECORD_BYTES
    where = (settings, topic, partitions, count)
    produced = meter.rate(
        f"{prefix}_produce", megabytes, lambda: megabytes / produce(*where, RECORD_BYTES)
    )
    return {**produced, **meter.rate(f"{prefix}_consume", megabytes, lambda: consume(*where))}


def main() -> None:
    parser = argparse.ArgumentParser(description="librdkafka load by PLAINTEXT and by SASL_SSL")
    parser.add_argument("bootstrap")
    parser.add_argument("settings")
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--acks", type=int, default=2_000)
    parser.add_argument("--pids", default="")
    options = parser.parse_args()
    secured: Settings = {**json.loads(Path(options.settings).read_text()), **QUIET}
    plain: Settings = {"bootstrap.servers": options.bootstrap, **QUIET}
    grant(options.bootstrap, str(secured["sasl.username"]), str(secured["sasl.password"]))
    meter = Meter([int(pid) for pid in options.pids.split(",") if pid])
    found: dict[str, float] = {}
    for prefix, settings in (("plain", plain), ("secured", secured)):
        topic, leaders = make_topic(options.bootstrap, options.partitions)
        found |= round_of(prefix, settings, topic, len(leaders), options.mb, meter)
    topic, leaders = make_topic(options.bootstrap, options.partitions)
    found["secured_ack_p50_ms"], found["secured_ack_p99_ms"] = acks(
        secured, topic, len(leaders), options.acks
    )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
