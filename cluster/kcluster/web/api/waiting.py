"""Wait until a condition of a cluster holds.

Owns: this route, the answer if a condition does not hold in time.  Never: tests a condition
(operations/conditions.py).
Kafka: the loop around kafka-topics.sh --describe.
"""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Annotated

from msgspec import Meta, Struct

from kcluster.config.files.durations import milliseconds
from kcluster.handle.cluster import Cluster
from kcluster.operations.conditions import condition
from kcluster.operations.errors import NotInTime
from kcluster.web.call import ApiCall
from kcluster.web.problems import RefusedRequest, wrong_value
from kcluster.web.routes import Runs, route


class WaitWanted(Struct):
    """The condition to wait for."""

    until: Annotated[
        str,
        Meta(
            description="As in scenario files: `isr(orders-0) = 3`, `leader(orders-0) = 2`, `event"
            " leader_elected of orders-0`, `settled`."
        ),
    ]
    within: Annotated[str, Meta(description="The longest time to wait.")] = "10s"
    since: Annotated[
        int | str | None,
        Meta(
            description="Events after the one with this sequence (17), or of the last while (10s),"
            " count; else those from now on."
        ),
    ] = None


class WaitAnswer(Struct, frozen=True):
    """The condition held after this time."""

    until: str
    waited_ms: int


@route(
    "POST",
    "/v1/clusters/<id>/wait",
    body=WaitWanted,
    answer=WaitAnswer,
    errors=(404, 408, 409, 422),
    runs=Runs.WAITING,
)
def wait_until(call: ApiCall) -> WaitAnswer:
    """Wait until a condition holds; if it does not hold in time, the answer is 408 with the present
    state. The wait ends with the client's connection."""
    wanted, cluster = call.values(WaitWanted), call.held.cluster
    began_s = time.monotonic()
    limit_s, since = seconds(wanted.within, "within"), wanted.since
    if isinstance(since, str):
        since = cluster.sequence_at(round(seconds(since, "since") * 1000))
    with call.while_client_stays():
        wait_for_condition(cluster, wanted.until, limit_s, "until", since)
    return WaitAnswer(wanted.until, round((time.monotonic() - began_s) * 1000))


def wait_for_condition(
    cluster: Cluster,
    text: str,
    limit_s: float,
    path: str,
    since: int | None = None,
    action: int | None = None,
) -> None:
    """Wait until a condition holds.  `path`: the path of the condition in the request; `action`:
    the number of the action before the wait."""
    words = " ".join(text.split())
    try:
        condition(words)
    except ValueError as error:
        raise wrong_value(path, f"{words}: {error}") from None
    try:
        cluster.wait_for(words, within=limit_s, since=since)
    except NotInTime as error:
        raise RefusedRequest(HTTPStatus.REQUEST_TIMEOUT, str(error), action=action) from None


def not_in_time(cluster: Cluster, limit_s: float, action: int | None = None) -> RefusedRequest:
    """The refusal if the cluster has not settled in time, with the conditions that are missing."""
    state = cluster.call(lambda: [one.text for one in cluster.verbs.settled.unsettled()])
    text = f"not settled within {limit_s:g} s"
    detail = f"{text}: {'; '.join(state)}" if state else text
    return RefusedRequest(HTTPStatus.REQUEST_TIMEOUT, detail, state=state, action=action)


def settle_limit_s(cluster: Cluster, within: str | None) -> float:
    """The time for which to wait until the cluster has settled."""
    return cluster.settle_limit_s if within is None else seconds(within, "within")


def seconds(text: str, path: str) -> float:
    """The seconds of a duration with its unit; a refusal if the text is none."""
    try:
        return milliseconds(text) / 1000
    except ValueError as error:
        raise wrong_value(path, f"{text}: {error}") from None
