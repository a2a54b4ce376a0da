"""Actions on a cluster, in the grammar of scenarios: perform one, undo one, undo all.

Owns: these routes, the numbers of actions, what is answered about one.  Never: performs an action
itself (scenario/perform.py does).
Kafka: an operator with kill -9, iptables and kafka-leader-election.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

from msgspec import Meta, Struct

from kcluster.actions.base import repair_all
from kcluster.config.files.tree import Scalar
from kcluster.contract import Note
from kcluster.events.render import note_values
from kcluster.handle.cluster import Cluster
from kcluster.json_types import JsonObject
from kcluster.operations.errors import ClusterError
from kcluster.scenario.language.loader import parse_action, read_action
from kcluster.scenario.language.model import Step
from kcluster.scenario.language.schema import step_schema
from kcluster.scenario.perform import Performed, late_problem, perform_step, undo
from kcluster.web.api.waiting import not_in_time, settle_limit_s, wait_for_condition
from kcluster.web.call import ApiCall
from kcluster.web.held import HeldCluster
from kcluster.web.problems import bad_request, not_found
from kcluster.web.routes import Runs, route

MAX_ACTIONS_KEPT: Final = 1_000
SETTLED: Final = "settled"
NO_WAIT: Final = "no"
_ACTIONS: Final = "actions"


class ActionParameters(Struct):
    """What an action is followed by."""

    wait: Annotated[
        str,
        Meta(
            description="`settled`: answer when the controller has noticed which brokers are gone"
            " and ISRs have changed accordingly; `no`: answer at once; or a condition, as in"
            " `isr(orders-0) = 2`."
        ),
    ] = SETTLED
    within: Annotated[
        str | None,
        Meta(description="How long to wait; else what Kafka's time constants need at most."),
    ] = None


class HealParameters(Struct):
    """How long to wait."""

    within: Annotated[
        str | None, Meta(description="How long to wait; else what Kafka's time constants need.")
    ] = None


class ActionAnswer(Struct, frozen=True):
    """An action.  `brokers`: the nodes that it was about, as far as it names any; `events`: what
    happened until it was answered, oldest first."""

    action: int
    text: str
    brokers: tuple[int, ...]
    is_undone: bool
    can_be_undone: bool
    events: list[JsonObject] = []


class ActionList(Struct, frozen=True):
    """The actions of this server on a cluster, oldest first."""

    actions: list[ActionAnswer]


class HealAnswer(Struct, frozen=True):
    """`events`: what happened until every replica was in sync again."""

    undone: list[int]
    events: list[JsonObject]


class _Taken(Struct):
    """An action that was performed."""

    number: int
    text: str
    brokers: tuple[int, ...]
    performed: Performed
    is_fault: bool


class _Actions:
    """The actions on one cluster, the newest ones."""

    def __init__(self) -> None:
        self._taken: dict[int, _Taken] = {}
        self._numbers = 0
        self._lock = threading.Lock()

    def add(self, step: Step, performed: Performed) -> _Taken:
        with self._lock:
            self._numbers += 1
            taken = _Taken(
                number=self._numbers,
                text=step.verb,
                brokers=performed.nodes,
                performed=performed,
                is_fault=step.action.IS_FAULT,
            )
            self._taken[taken.number] = taken
            if len(self._taken) > MAX_ACTIONS_KEPT:
                del self._taken[next(iter(self._taken))]
        return taken

    def all(self) -> list[_Taken]:
        with self._lock:
            return list(self._taken.values())


def _actions(held: HeldCluster) -> _Actions:
    actions: _Actions = held.belonging(_ACTIONS, _Actions)
    return actions


@route(
    "POST",
    "/v1/clusters/<id>/actions",
    query=ActionParameters,
    body=step_schema(),
    takes_yaml=True,
    answer=ActionAnswer,
    status=201,
    errors=(404, 408, 409, 422),
    runs=Runs.WAITING,
)
def perform_action(call: ApiCall) -> ActionAnswer:
    """Perform an action of scenario files, such as {"kill": "leader(orders-0)", "for": "5s"}."""
    step = call.reading(lambda: read_step(call))
    cluster = call.held.cluster
    settle_limit_s(cluster, call.query.within)  # a wrong time is refused before the action
    with noted(cluster) as notes:
        performed = perform_step(cluster, step)
        taken = _actions(call.held).add(step, performed)
        wait_after(call, cluster, taken.number)
        if (problem := late_problem(cluster)) is not None:
            raise ClusterError(problem)
    return action_answer(taken, notes)


def wait_after(call: ApiCall, cluster: Cluster, action: int) -> None:
    """Wait for what the request wants to wait for, after an action."""
    wait, limit_s = call.query.wait, settle_limit_s(cluster, call.query.within)
    if cluster.clock().paused:
        return  # nothing would follow
    with call.while_client_stays():
        if wait == SETTLED:
            if not cluster.wait_until_settled(timeout_s=limit_s):
                raise not_in_time(cluster, limit_s, action)
        elif wait != NO_WAIT:
            wait_for_condition(cluster, wait, limit_s, "wait", action=action)


def read_step(call: ApiCall) -> Step:
    """The action in the body."""
    if not call.body.strip():
        raise bad_request('the body is empty; an action is {"kill": 1}')
    node = call.node()
    if isinstance(node, Scalar) and not call.is_yaml:
        return parse_action(node.text or "")
    return read_action(node, "")


@contextmanager
def noted(cluster: Cluster) -> Iterator[list[Note]]:
    """What happens meanwhile."""
    notes: list[Note] = []
    end = cluster.subscribe(lambda entry: notes.append(entry.note))
    try:
        yield notes
    finally:
        end()


def action_answer(taken: _Taken, notes: list[Note]) -> ActionAnswer:
    """What is answered about an action."""
    return ActionAnswer(
        action=taken.number,
        text=taken.text,
        brokers=taken.brokers,
        is_undone=taken.performed.is_undone,
        can_be_undone=taken.performed.can_be_undone,
        events=[note_values(note) for note in tuple(notes)],
    )


@route("GET", "/v1/clusters/<id>/actions", answer=ActionList, errors=(404,), runs=Runs.AT_ONCE)
def list_actions(call: ApiCall) -> ActionList:
    """The actions that requests to this server have performed, oldest first."""
    return ActionList([action_answer(taken, []) for taken in _actions(call.held).all()])


@route(
    "DELETE",
    "/v1/clusters/<id>/actions/<number>",
    query=ActionParameters,
    answer=ActionAnswer,
    errors=(404, 408, 409, 422),
    runs=Runs.WAITING,
)
def undo_action(call: ApiCall) -> ActionAnswer:
    """Undo an action: start what it killed, heal what it cut."""
    taken = find_action(call.held, call.named["number"])
    if not taken.performed.can_be_undone:
        raise ClusterError(f"{taken.text} cannot be undone")
    if taken.performed.is_undone:
        raise ClusterError(f"action {taken.number} ({taken.text}) is undone already")
    cluster = call.held.cluster
    with noted(cluster) as notes:
        undo(cluster, taken.performed)
        wait_after(call, cluster, taken.number)
    return action_answer(taken, notes)


def find_action(held: HeldCluster, number: str) -> _Taken:
    """The action with this number."""
    for taken in _actions(held).all():
        if str(taken.number) == number:
            return taken
    raise not_found(f"there is no action {number}")


@route(
    "POST",
    "/v1/clusters/<id>/heal",
    query=HealParameters,
    answer=HealAnswer,
    errors=(404, 408, 409, 422),
    runs=Runs.WAITING,
)
def heal_cluster(call: ApiCall) -> HealAnswer:
    """Undo every fault: links, rules, full disks, pauses, deaths; answered when all replicas are
    in sync again."""
    cluster = call.held.cluster
    limit_s = settle_limit_s(cluster, call.query.within)
    in_force = [
        taken
        for taken in reversed(_actions(call.held).all())
        if taken.is_fault and taken.performed.can_be_undone and not taken.performed.is_undone
    ]
    with noted(cluster) as notes:
        for taken in in_force:
            undo(cluster, taken.performed)
        problems = cluster.call(lambda: repair_all(cluster.verbs))
        if problems:
            raise ClusterError("; ".join(problems))
        with call.while_client_stays():
            wait_for_condition(cluster, SETTLED, limit_s, "within")
    return HealAnswer([taken.number for taken in in_force], [*map(note_values, tuple(notes))])
