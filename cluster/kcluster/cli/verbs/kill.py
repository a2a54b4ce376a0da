"""`kcluster kill TARGETS`: end brokers' processes, or pause them.

Owns: the verb: its options, its request, when it is refused.  Never: carries it out
(handle/verbs.py).  Kafka: kill.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from kcluster.cli.click_tools import (
    Section,
    control_options,
    how_option,
    make_change,
    section,
    targets_argument,
    wait_option,
)
from kcluster.cli.control.arguments import (
    brokers_text,
    check_how,
    choose,
    find_nodes,
    left_alone_lines,
    seconds_text,
)
from kcluster.cli.control.protocol import ChangeResult, ControlRequest, handles
from kcluster.deaths import PAUSE, WAYS_TO_FAIL, DeathKind
from kcluster.operations.states import StateVerb

if TYPE_CHECKING:
    from kcluster.cli.control.changes import Say
    from kcluster.cli.control.session import ControlSession
    from kcluster.handle.cluster import Cluster

PARTITIONS_NAMED: Final = 5


class KillRequest(ControlRequest, verb="kill"):
    """`broker`: targets as typed.  `how`: one of WAYS_TO_FAIL."""

    broker: str | int
    how: str = DeathKind.KILL
    wait: bool = True


@section(Section.FAULTS)
@click.command("kill")
@targets_argument
@how_option(WAYS_TO_FAIL, DeathKind.KILL)
@wait_option
@control_options
def command(targets: str, how: str, wait: bool, name: str | None, as_json: bool) -> None:
    """Take brokers down, or pause them.

    TARGETS: 1 or 1,2 or 'leader(orders-0)', 'followers(orders-0)', 'rack a', 'all but 1', as in
    scenario files.  Returns when the cluster has taken over from them.
    """
    make_change(KillRequest(targets, how, wait), name, as_json)


@handles(KillRequest)
def handle(session: ControlSession, request: KillRequest) -> ChangeResult:
    """Kill or pause the brokers, except those that are down or paused already."""
    cluster = session.cluster
    found = find_nodes(cluster, request.broker)
    check_how(request.how, WAYS_TO_FAIL)
    is_pause = request.how == PAUSE
    verb = StateVerb.PAUSE if is_pause else StateVerb.KILL
    sorted_out = choose(cluster, verb, found, request.how)
    chosen = sorted_out.nodes

    def operation(say: Say) -> None:
        limit = seconds_text(cluster.notice_limit_s)
        done = f"{session.name}: {brokers_text(chosen)} {'paused' if is_pause else 'killed'}"
        waiting = f"{done}; waiting until the cluster notices (up to {limit})"
        if is_pause:
            cluster.pause(chosen, wait=False)
        elif request.how == DeathKind.CLEAN:
            say(f"{session.name}: {brokers_text(chosen)} asked to shut down")
            cluster.kill(chosen, request.how, wait=False)
            waiting = ""
        else:
            cluster.kill(chosen, request.how, wait=False)
        waits = request.wait and not cluster.driver.is_clock_paused
        if waiting:
            say(waiting if waits else done)
        if waits:
            cluster.wait_until_without(chosen)

    left_alone = left_alone_lines(verb, sorted_out)
    return session.change(operation, chosen, lambda: alone(cluster, chosen), left_alone=left_alone)


def alone(cluster: Cluster, brokers: Sequence[int]) -> Iterator[str]:
    """A hint for partitions that are offline since their only replica is gone."""
    from kcluster.operations.status import offline_partitions

    found = cluster.call(lambda: list(offline_partitions(cluster.driver.dispatcher)))
    offline = [
        f"{topic}-{one.partition}"
        for topic, one in found
        if len(one.replicas) == 1 and one.replicas[0] in brokers
    ]
    if offline:
        named = ", ".join(offline[:PARTITIONS_NAMED])
        if len(offline) > PARTITIONS_NAMED:
            named += f" and {len(offline) - PARTITIONS_NAMED} more"
        have = "has" if len(offline) == 1 else "have"
        yield f"{named} {have} one replica: no broker can take over (replication_factor: 3)"
