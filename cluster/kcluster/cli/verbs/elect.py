"""`kcluster elect TOPIC-PARTITION`: elect the preferred leader or, with `--to`, another replica.

Owns: the verb: its options, its request, when it is refused.  Never: elects (the controller does).
Kafka: kafka-leader-election.sh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kcluster.cli.click_tools import Section, control_options, make_change, section
from kcluster.cli.completion import complete_partitions, complete_targets
from kcluster.cli.control.arguments import find_nodes, find_partition
from kcluster.cli.control.protocol import ChangeResult, ControlError, ControlRequest, handles

if TYPE_CHECKING:
    from kcluster.cli.control.session import ControlSession


class ElectRequest(ControlRequest, verb="elect"):
    """`partition`, `to`: as typed.  `to` None: the preferred leader."""

    partition: str
    to: str | int | None = None


@section(Section.FAULTS)
@click.command("elect")
@click.argument("partition", metavar="TOPIC-PARTITION", shell_complete=complete_partitions)
@click.option(
    "--to",
    metavar="TARGET",
    help="The broker to elect; it must be in the ISR.",
    shell_complete=complete_targets,
)
@control_options
def command(partition: str, to: str | None, name: str | None, as_json: bool) -> None:
    """Elect the preferred leader of a partition, or another replica.

    The partition is written like orders-0.
    """
    make_change(ElectRequest(partition, to), name, as_json)


@handles(ElectRequest)
def handle(session: ControlSession, request: ElectRequest) -> ChangeResult:
    """Elect the leader, if the broker can lead."""
    cluster = session.cluster
    partition = find_partition(cluster, request.partition)
    name = f"{partition.topic}-{partition.partition}"
    to = request.to
    broker_id = partition.replicas[0] if to is None else find_nodes(cluster, to)[0]
    if broker_id not in partition.replicas:
        replicas = ", ".join(map(str, partition.replicas))
        raise ControlError(
            f"broker {broker_id} has no replica of {name}; its replicas are on {replicas}", 2
        )
    if broker_id == partition.leader:
        role = "leader, and preferred" if to is None else "leader"
        return session.unchanged(f"{name}: broker {broker_id} is already the {role}")
    if broker_id not in partition.isr:
        isr = ", ".join(map(str, partition.isr)) or "empty"
        raise ControlError(
            f"broker {broker_id} is not in the ISR of {name} ({isr}), so it cannot be elected"
        )
    if to is None:
        return session.change(lambda say: cluster.elect(partition.topic, partition.partition))
    return session.change(lambda say: cluster.move(partition.topic, partition.partition, broker_id))
