"""Actions on a cluster, in the grammar of scenarios: perform one, undo one, undo all.

Owns: these routes, the numbers of actions, what is answered about one.  Never: performs an action
itself (actions/stage.py does).
Kafka: an operator with kill -9, iptables and kafka-leader-election.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Annotated, Final, TypeAlias

import gevent
import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from kcluster.actions.base import repair_all
from kcluster.actions.stage import Performed
from kcluster.config.files.tree import Scalar
from kcluster.contract import Note
from kcluster.events.render import ECHOES, fold, folded_line, note_values
from kcluster.handle.cluster import Cluster
from kcluster.json_types import JsonObject
from kcluster.operations.errors import ClusterError
from kcluster.operations.status import NoteEntry, offline_partitions
from kcluster.runtime.dispatch import Dispatcher
from kcluster.scenario.language.loader import no_undo, parse_action, read_action
from kcluster.scenario.language.model import Step
from kcluster.scenario.language.schema import step_schema
from kcluster.scenario.language.words import moment
from kcluster.web.api.waiting import not_in_time, settle_limit_s, wait_for_condition
from kcluster.web.call import ApiAnswer, ApiCall
from kcluster.web.held import HeldCluster
from kcluster.web.problems import (
    EXPECTED,
    PlacedProblem,
    ProblemDocument,
    ProcessStanding,
    bad_request,
    broker_states,
    not_found,
    refusal_of,
    wrong_parameters,
)
from kcluster.web.routes import JSON, NDJSON, Runs, route
from kcluster.web.streams import GATHER_S, QUIET_S, Inbox

MAX_ACTIONS_KEPT: Final = 1_000
SETTLED: Final = "settled"
NO_WAIT: Final = "no"


class ActionParameters(Struct, rename={"for_": "for"}):
    """The events for which the answer to an action waits, and its undoing."""

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
    for_: Annotated[
        str | None, Meta(description="Undo the action after this time, as the key `for` does.")
    ] = None
    resume: Annotated[
        bool, Meta(description="Let a paused clock go on once the action is performed.")
    ] = False


class HealParameters(Struct):
    """The parameters of a heal: how long to wait."""

    within: Annotated[
        str | None, Meta(description="How long to wait; else what Kafka's time constants need.")
    ] = None


class ActionAnswer(Struct, frozen=True):
    """An action. `brokers`: the nodes that it names, if any; `left_alone`: the named nodes on which
    it had nothing to do; `states`: the present states of the others.  `alone`: partitions that are
    offline, because their only replica is on one of these brokers.  `notice_s`: how long the
    controller takes at most to miss a broker.  `waits_s`: how long the request waits at most for
    the consequences; 0 if it does not wait, for example while the clock is paused.  `events`: the
    events until the answer, oldest first."""

    action: int
    text: str
    brokers: tuple[int, ...]
    left_alone: list[ProcessStanding]
    states: list[ProcessStanding]
    alone: list[str]
    is_undone: bool
    can_be_undone: bool
    is_clock_paused: bool
    notice_s: float
    waits_s: float = 0
    events: list[JsonObject] = []


class ActionProgress(Struct, frozen=True, omit_defaults=True):
    """A line of an answer that is streamed.  `performed`: comes once, before the wait; `line`: an
    event, or many equal ones, as `kcluster events` shows it; the last line has `answer`, without
    events, or `problem`."""

    performed: ActionAnswer | None = None
    line: str | None = None
    answer: ActionAnswer | None = None
    problem: ProblemDocument | None = None


_Part: TypeAlias = Note | ActionProgress


class ActionList(Struct, frozen=True):
    """The actions of this server on a cluster, oldest first."""

    actions: list[ActionAnswer]


class HealAnswer(Struct, frozen=True):
    """The result of a heal.  `events`: the events until every replica was in sync again."""

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
    actions = held.part(_Actions, _Actions)
    return actions


@route(
    "POST",
    "/v1/clusters/<id>/actions",
    query=ActionParameters,
    body=step_schema(),
    takes_yaml=True,
    answer=ActionAnswer,
    also=(NDJSON,),
    status=201,
    errors=(404, 408, 409, 422),
    runs=Runs.WAITING,
)
def perform_action(call: ApiCall) -> ActionAnswer | ApiAnswer:
    """Perform an action of scenario files, such as {"kill": "leader(orders-0)", "for": "5s"}.  With
    Accept: application/x-ndjson the answer comes line by line, while things happen."""
    step = call.reading(lambda: read_step(call))
    held = call.held
    settle_limit_s(held.cluster, call.query.within)  # a wrong time is refused before the action
    if call.accepts(JSON, NDJSON) == NDJSON:
        return ApiAnswer(body=streamed(call, step), media_type=NDJSON)
    with noted(held.cluster) as notes:
        taken = _perform(call, held, step, lambda: None)
        _wait_for_end(call, held.cluster, taken)
    return action_answer(held, taken, notes)


def _perform(
    call: ApiCall, held: HeldCluster, step: Step, is_performed: Callable[[], None]
) -> _Taken:
    """Perform an action.  `is_performed`: called before anything follows from it."""
    options = step.options

    def perform() -> Performed:
        stage = held.cluster.stage
        performed = stage.perform(step.action, options.as_, options.undone_after_ms)
        is_performed()
        return performed

    try:
        return _actions(held).add(step, held.cluster.call(perform))
    finally:
        if call.query.resume:
            held.cluster.resume_clock()


def _wait_for_end(call: ApiCall, cluster: Cluster, taken: _Taken) -> None:
    with call.while_client_stays():
        wait_after(call, cluster, taken)
    _refuse_late(cluster)


def _refuse_late(cluster: Cluster) -> None:
    """Report why an action could not be performed, if that became known only meanwhile."""
    problems = cluster.stage.problems
    problem = cluster.call(lambda: problems.pop() if problems else None)
    if problem is not None:
        raise ClusterError(problem)


class _Order:
    """The order of a streamed answer: what follows from an action comes after the line that it is
    performed, however long that line takes to write."""

    def __init__(self, inbox: Inbox[_Part]) -> None:
        self._inbox = inbox
        self._held: list[Note] | None = None
        self._lock = threading.Lock()

    def note(self, entry: NoteEntry) -> None:
        """Tell an event, or hold it back."""
        with self._lock:
            if self._held is None:
                self._inbox.put(entry.note)
            else:
                self._held.append(entry.note)

    def hold_notes(self) -> None:
        """Hold back what happens until the next `put`."""
        with self._lock:
            self._held = []

    def put(self, line: ActionProgress) -> None:
        """Tell a line, and then what was held back."""
        with self._lock:
            for part in (line, *(self._held or ())):
                self._inbox.put(part)
            self._held = None


def streamed(call: ApiCall, step: Step) -> Iterator[bytes]:
    """The lines of an answer.  Events are sent within GATHER_S, with equal ones folded."""
    held = call.held
    cluster, encode = held.cluster, msgspec.json.Encoder().encode
    # Without a limit: the death of a broker may have 50,000 events at once.
    inbox: Inbox[_Part] = Inbox(call.server.call_soon, sys.maxsize)
    order = _Order(inbox)

    def act() -> None:
        try:
            taken = _perform(call, held, step, order.hold_notes)
            waits_s = waiting_s(call, cluster)
            order.put(ActionProgress(performed=action_answer(held, taken, (), waits_s)))
            wait_after(call, cluster, taken)
            _refuse_late(cluster)
            order.put(ActionProgress(answer=action_answer(held, taken, ())))
        except EXPECTED as error:
            order.put(ActionProgress(problem=refusal_of(error).document))
        finally:
            inbox.close()

    end = cluster.subscribe(order.note)
    acting = gevent.spawn(act)
    try:
        with call.while_client_stays():
            is_over = False
            while not is_over:
                items = inbox.take(QUIET_S)
                if not inbox.is_closed:
                    gevent.sleep(GATHER_S)
                is_over = inbox.is_closed
                lines = (encode(each) for each in _shown(items + inbox.take(0), held))
                yield b"\n".join((*lines, b""))
    finally:
        end()
        acting.kill()


def _shown(items: list[_Part], held: HeldCluster) -> Iterator[ActionProgress]:
    """The lines for the notes, in order, with the remaining lines between them."""
    for is_note, group in groupby(items, lambda item: isinstance(item, Note)):
        if is_note:
            notes = [x for x in group if isinstance(x, Note) and not isinstance(x.event, ECHOES)]
            for entry in fold(notes):
                yield ActionProgress(line=folded_line(entry, held.began_ms))
        else:
            yield from (item for item in group if isinstance(item, ActionProgress))


def wait_after(call: ApiCall, cluster: Cluster, taken: _Taken) -> None:
    """Wait for the consequences of an action, if the request asks for it."""
    wait, limit_s = call.query.wait, settle_limit_s(cluster, call.query.within)
    if cluster.clock().paused:
        return  # there would be no consequences
    if wait == SETTLED:
        if not cluster.wait_until_settled(timeout_s=limit_s, after=taken.performed.is_over):
            raise not_in_time(cluster, limit_s, taken.number)
    elif wait != NO_WAIT:
        wait_for_condition(cluster, wait, limit_s, "wait", action=taken.number)


def waiting_s(call: ApiCall, cluster: Cluster) -> float:
    """The longest time for which `wait_after` waits; 0 if it does not wait."""
    if call.query.wait == NO_WAIT or cluster.clock().paused:
        return 0
    if call.query.wait == SETTLED and cluster.is_settled():
        return 0
    return settle_limit_s(cluster, call.query.within)


def read_step(call: ApiCall) -> Step:
    """The action in the body, with `for` of the query."""
    if not call.body.strip():
        raise bad_request('the body is empty; an action is {"kill": 1}')
    node = call.node()
    if isinstance(node, Scalar) and not call.is_yaml:
        step = parse_action(node.text or "")
    else:
        step = read_action(node, "")
    if (undone_after := call.query.for_) is None:
        return step
    if not step.action.CAN_BE_UNDONE:
        raise wrong_parameters([PlacedProblem("for", no_undo(step.verb))])
    try:
        options = replace(step.options, for_=moment(undone_after))
    except ValueError as error:
        problem = PlacedProblem("for", f"{undone_after}: {error}")
        raise wrong_parameters([problem]) from None
    return replace(step, options=options)


@contextmanager
def noted(cluster: Cluster) -> Iterator[list[Note]]:
    """The events from an action to its answer."""
    notes: list[Note] = []
    end = cluster.subscribe(lambda entry: notes.append(entry.note))
    try:
        yield notes
    finally:
        end()


def action_answer(
    held: HeldCluster, taken: _Taken, notes: Iterable[Note], waits_s: float = 0
) -> ActionAnswer:
    """The answer to a request about an action."""
    cluster, performed = held.cluster, taken.performed
    left_alone = broker_states(performed.left_alone)
    chosen = tuple(x for x in taken.brokers if all(x != other.id for other in left_alone))
    known = {broker.id: broker.state for broker in cluster.brokers()}
    return ActionAnswer(
        action=taken.number,
        text=taken.text,
        brokers=taken.brokers,
        left_alone=left_alone,
        states=broker_states((x, known[x]) for x in chosen if x in known),
        alone=cluster.call(lambda: offline_without(cluster.driver.dispatcher, chosen)),
        is_undone=performed.is_undone,
        can_be_undone=performed.can_be_undone,
        is_clock_paused=cluster.driver.is_clock_paused,
        notice_s=cluster.notice_limit_s,
        waits_s=waits_s,
        events=[note_values(note) for note in tuple(notes)],
    )


def offline_without(dispatcher: Dispatcher, brokers: tuple[int, ...]) -> list[str]:
    """The partitions that are offline because their only replica is on one of these brokers."""
    return [
        f"{topic}-{one.partition}"
        for topic, one in offline_partitions(dispatcher)
        if len(one.replicas) == 1 and one.replicas[0] in brokers
    ]


@route("GET", "/v1/clusters/<id>/actions", answer=ActionList, errors=(404,), runs=Runs.AT_ONCE)
def list_actions(call: ApiCall) -> ActionList:
    """The actions that requests to this server have performed, oldest first."""
    held = call.held
    return ActionList([action_answer(held, taken, ()) for taken in _actions(held).all()])


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
    held = call.held
    with noted(held.cluster) as notes, call.while_client_stays():
        held.cluster.call(taken.performed.undo)
        wait_after(call, held.cluster, taken)
    return action_answer(held, taken, notes)


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
            cluster.call(taken.performed.undo)
        problems = cluster.call(lambda: repair_all(cluster.verbs))
        if problems:
            raise ClusterError("; ".join(problems))
        with call.while_client_stays():
            wait_for_condition(cluster, SETTLED, limit_s, "within")
    return HealAnswer([taken.number for taken in in_force], [*map(note_values, tuple(notes))])
