"""The driver of a real Kafka: its processes under the clock, the calls and the conditions of the
live driver.

Owns: the way of a start, a death or a pause to the real process, the way of the metadata log, the
ends of logs and answers to the mirrors.  Never: opens a listener (Kafka does), lets the clock stand
still: a real Kafka's goes on.  Kafka: the machines of brokers.

Everything here runs in the driver's hub.  What comes from Kafka is applied between two dispatches.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Final, TypeVar

import gevent

from kcluster.apache_kafka.processes import KafkaProcesses
from kcluster.config.creatable_topic import creatable_topic
from kcluster.contract import (
    CONTROLLER_ID,
    Event,
    Note,
    NoteId,
    PeerRequest,
    PeerResponse,
    Reply,
    Request,
    Tick,
)
from kcluster.controller.metadata_log import PendingTopics
from kcluster.controller.outcome import ApiError
from kcluster.deaths import DeathKind, ProcessState
from kcluster.drivers.live import LiveDriver
from kcluster.drivers.sockets.acceptor import ReservedPort
from kcluster.drivers.sockets.listener import Acceptor
from kcluster.events.brokers import ControllerDown
from kcluster.mirror.connection import InnerLogin, NoAnswer
from kcluster.mirror.disk import MirrorDisk
from kcluster.mirror.logs import read_ends
from kcluster.mirror.metadata_log import MetadataTail
from kcluster.mirror.metadata_records import KafkaRecord
from kcluster.mirror.metadata_state import MetadataState
from kcluster.mirror.moves import move_leader
from kcluster.mirror.nodes import MirrorBroker, MirrorController
from kcluster.mirror.passing import GroundProxy
from kcluster.mirror.quorum import KafkaQuorum
from kcluster.mirror.requests import ControllerRequests, NodeRequests, describe_quorum
from kcluster.mirror.transactions import TransactionWatch
from kcluster.operations.admin import create_acls_request
from kcluster.operations.errors import ClusterError
from kcluster.partition.disk import Disk
from kcluster.protocol import messages as m
from kcluster.protocol.errors import error_of
from kcluster.protocol.messages import Message
from kcluster.runtime.build import Plan
from kcluster.runtime.process import Process

T = TypeVar("T", bound=Message)

ENDS_EVERY_S: Final = 0.2
"""The interval at which brokers are asked where their logs end."""
APPLY_LIMIT_S: Final = 5.0
APPLY_POLL_S: Final = 0.002
BOOTSTRAP_TIMEOUT_MS: Final = 30_000


class KafkaDriver(LiveDriver):
    """Runs the processes of a real Kafka, and keeps the mirrors up to date."""

    def __init__(
        self,
        plan: Plan,
        processes: KafkaProcesses,
        log: Callable[[str], None] | None = None,
        clients_ports: Mapping[int, ReservedPort] | None = None,
    ) -> None:
        """`clients_ports`: the port for each broker at which a proxy serves its clients; None:
        clients reach the brokers themselves."""
        self.real = processes
        self._clients_ports = clients_ports
        self.proxy: GroundProxy | None = None
        """The proxy, while the cluster runs with one."""
        self.ended: dict[int, str] = {}
        """Why a node has ended by itself, until it is started again, in one line by node."""
        self.on_metadata: Callable[[], None] = lambda: None
        """Called when the mirrors' metadata has changed."""
        blank = _never_stepped(plan.processes[0]).controller
        assert blank is not None
        first = self._controller_node = MirrorController(blank.config, blank.image, blank.log, self)
        self.state = MetadataState(first.image, first.partitions.index, first.log)
        self._disks: dict[int, Disk] = {}
        plan.processes = tuple(map(self._mirrored, plan.processes))
        plan.disks = self._disks
        super().__init__(plan, {}, log)
        self.tls = processes.tls
        quorum = {
            each: address
            for each in processes.controller_ids
            if (address := processes.addresses[each].controller) is not None
        }
        self._login = inner_login(processes)
        self._tail = MetadataTail(quorum, self.state, self._on_records, self._login)
        self.quorum = KafkaQuorum(processes, lambda: self.state.leader)
        self._requests = ControllerRequests(quorum, lambda: self._tail.leader, self._login)
        self._brokers: dict[int, NodeRequests] = {}
        self.looked_ms = 0
        """The ends of logs are not older than this time."""
        self.transactions: TransactionWatch | None = None
        """What is known of open transactions, if a scenario has some."""
        self._cut_off: set[int] = set()
        """The brokers that a cut keeps from the controller."""
        self._greenlets: list[gevent.Greenlet] = []
        self._is_bootstrapped = False
        """Whether the ACLs and topics of the topology have been requested."""
        self._last_ms = 0
        """The time of the newest event of the metadata log."""

    def _mirrored(self, process: Process) -> Process:
        if process.node_id == CONTROLLER_ID:
            return Process(CONTROLLER_ID, lambda: self._controller_node)
        disk = self._disks[process.node_id] = MirrorDisk()

        def build() -> MirrorBroker:
            blank = _never_stepped(process).broker
            assert blank is not None
            return MirrorBroker(blank, self.state.image, disk, self)

        return Process(process.node_id, build, disk)

    # ----------------------------------------------------------------------------- run and stop

    def run(self, on_ready: Callable[[], None] | None = None) -> None:
        """Start every process of Kafka, then serve until `stop`."""
        self.real.on_exit = self._on_exit
        try:
            self._open()
            self._brokers = {broker: self.requests(broker) for broker in self.real.broker_ids}
            self._open_proxy()
            self._greenlets = [gevent.spawn(each) for each in (self._tail.run, self._look)]
            super().run(on_ready)
        finally:
            gevent.killall(self._greenlets)
            self._requests.close()
            for requests in self._brokers.values():
                requests.close()
            if self.proxy is not None:
                self.proxy.close()
            self.real.close()

    def _open(self) -> None:
        try:
            self.real.open()
        except OSError as error:
            raise ClusterError(f"{error.filename or 'a file'}: {error.strerror}") from error

    def _open_proxy(self) -> None:
        if self._clients_ports is None:
            return
        brokers = {each: self.real.addresses[each].listeners[0] for each in self._brokers}
        addresses = {each: (one.host, one.port) for each, one in brokers.items()}
        seed = self.plan.seed
        self.proxy = GroundProxy(
            self._clients_ports, addresses, self, self._note_now, self.log, seed
        )

    @property
    def has_proxy(self) -> bool:
        """Whether the requests of clients are seen."""
        return self._clients_ports is not None

    # ----------------------------------------------------------------------- what clients request

    def passed(self, broker_id: int, request: Request, body: Message | None) -> None:
        """Report a request that a client sent, and its answer, as those of a simulated broker."""
        self.wake()
        reply, now_ms = Reply(request, body), self.dispatcher.now_ms
        for sink in self.dispatcher.reply_sinks:
            sink(broker_id, reply, now_ms)
        self.settle_soon()

    def unanswered(self, broker_id: int, request: Request) -> None:
        """Report a request whose client got no answer."""
        self.wake()
        self.dispatcher.gave_up(broker_id, request)
        self.settle_soon()

    def soon(self, callback: Callable[[], object]) -> None:
        """Call back when the present greenlet waits, or has ended."""
        gevent.get_hub().loop.run_callback(callback)

    def _note_now(self, event: Event) -> None:
        self.wake()
        self.dispatcher.note(event)
        self.settle_soon()

    # ------------------------------------------------------------------------------ as an Outlet

    def process_changed(self, process: Process, was: ProcessState) -> None:
        """Do to the real process what was done to its mirror.  Part of Outlet."""
        node_id = process.node_id
        self._note_silence(node_id)
        if node_id == CONTROLLER_ID and not self.quorum.is_single:
            return  # it stands for several, whose processes have been changed one by one
        if node_id == CONTROLLER_ID:
            self.quorum.changed(node_id, is_paused=process.state is ProcessState.PAUSED)
        if process.state is ProcessState.PAUSED:
            self.real.pause(node_id)
        elif process.state is ProcessState.DOWN:
            if self.real.is_running(node_id):
                self.real.kill(node_id)
            self._wipe_if_wiped(process)
            self._forget(node_id)
            if self.proxy is not None:
                self.proxy.shut(node_id)
        elif was is ProcessState.PAUSED:
            self.real.resume(node_id)
        elif not self.real.is_running(node_id):
            self.ended.pop(node_id, None)
            self._wipe_if_wiped(process)
            self.real.start(node_id)

    def _wipe_if_wiped(self, process: Process) -> None:
        """Empty the real directories of a node that is down if its mirror's disk has been wiped."""
        if isinstance(process.disk, MirrorDisk) and process.disk.is_wiped:
            process.disk.is_wiped = False
            self.real.wipe(process.node_id)

    def accept_clients(self, node_id: int) -> None:
        """Open the port of the proxy for a broker; Kafka has opened its own.  Part of Outlet."""
        if self.proxy is not None:
            self.proxy.open(node_id)

    def outside_clients(self, pattern: str, by_host: bool) -> tuple[int, ...]:
        """None: links of clients from outside cannot be cut at a real broker.  Part of Outlet."""
        return ()

    def new_ports(self, node_id: int, count: int) -> tuple[int, ...]:
        raise AssertionError("refused before (verbs.py)")

    def requests(self, broker_id: int) -> NodeRequests:
        """A new connection to a broker, by the listener of the other brokers if it has one."""
        found = self.real.addresses[broker_id]
        listener = found.listeners[0] if found.inner is None else found.inner
        return NodeRequests((listener.host, listener.port), self._login)

    def address(self, node_id: int, at: int) -> tuple[str, int]:
        """The host and port at which clients reach a broker's listener number `at`."""
        if self._clients_ports is not None:
            return self.plan.addresses[node_id]
        listener = self.real.addresses[node_id].listeners[at]
        return listener.host, listener.port

    def _acceptor(self, node_id: int, at: int) -> Acceptor:
        raise AssertionError("a real Kafka has its own listeners")

    def note_silence(self, node_id: int, is_cut_off: bool) -> None:
        """Take note of whether a cut keeps a broker's heartbeats from the controller."""
        (self._cut_off.add if is_cut_off else self._cut_off.discard)(node_id)
        self._note_silence(node_id)

    def _note_silence(self, node_id: int) -> None:
        is_up = self.dispatcher.processes[node_id].state is ProcessState.UP
        if is_up and node_id not in self._cut_off:
            self.state.known.silent_since_ms.pop(node_id, None)
        else:
            self.state.known.silent_since_ms.setdefault(node_id, self.now_ms())

    def _forget(self, node_id: int) -> None:
        if node_id in self._brokers:
            self._brokers[node_id].close()

    # ---------------------------------------------------------------------------- the processes

    def _on_exit(self, node_id: int, code: int) -> None:
        """A process has ended: after a controlled shutdown, or by itself."""
        if node_id in self.quorum.ids and not self.quorum.is_single:
            self._on_controller_exit(node_id, code)
            return
        process = self.dispatcher.processes[node_id]
        if process.state is ProcessState.DOWN:
            return
        is_clean = self.dispatcher.is_shutting_down(node_id)
        if not is_clean:
            self.ended[node_id] = self.real.why_ended(node_id, code)
            self.log(self.ended[node_id])
        how = DeathKind.CLEAN if is_clean else DeathKind.KILL
        self._run_command(lambda: self.dispatcher.take_down(node_id, how))

    def _on_controller_exit(self, node_id: int, code: int) -> None:
        """One of several controllers has ended: by a verb, or by itself."""
        self.quorum.changed(node_id)
        if code != -signal.SIGKILL:
            self.ended[node_id] = self.real.why_ended(node_id, code)
            self.log(self.ended[node_id])
        self._run_command(self.settle_quorum)

    def change_quorum(self, change: Callable[[], None]) -> None:
        """Change the processes of several controllers, and their mirror with them."""
        active = self.state.leader
        change()
        for node_id in self.quorum.ids:
            if self.real.is_running(node_id):
                self.ended.pop(node_id, None)
        had_majority = self.dispatcher.processes[CONTROLLER_ID].state is ProcessState.UP
        self.settle_quorum()
        if had_majority and self.quorum.has_majority and not self.real.is_running(active):
            self.dispatcher.note(ControllerDown())

    def settle_quorum(self) -> None:
        """Have the mirrored controller up if, and only if, a majority of the controllers runs."""
        is_up = self.dispatcher.processes[CONTROLLER_ID].state is ProcessState.UP
        if is_up and not self.quorum.has_majority:
            self.dispatcher.take_down(CONTROLLER_ID, DeathKind.KILL)
        elif not is_up and self.quorum.has_majority:
            self.dispatcher.start(CONTROLLER_ID)

    def shut_down(self, node_id: int) -> None:
        """Ask a process to stop cleanly; `_on_exit` is told of its end."""
        if self.real.is_running(node_id):
            self.real.shut_down(node_id)

    # ---------------------------------------------------------------------------- the metadata

    def _on_records(self, records: Sequence[KafkaRecord]) -> None:
        self._run_command(lambda: self._take(records))

    def _take(self, records: Sequence[KafkaRecord]) -> None:
        dispatcher = self.dispatcher
        self.state.known.shutting_down = tuple(
            filter(dispatcher.is_shutting_down, self.real.broker_ids)
        )
        taken = self.state.take(records)
        now_ms = dispatcher.now_ms
        for broker in self._mirrors():
            for topic, partition in taken.partitions:
                broker.adopt(topic, partition, now_ms)
            for topic_id in taken.removed:
                broker.forget(topic_id)
        ids: dict[int, NoteId] = {}
        for change in taken.changes:
            self._last_ms = max(self._last_ms, change.at_ms)
            cause = None if change.cause is None else ids.get(id(change.cause))
            ids[id(change.event)] = dispatcher.note(change.event, cause, self._last_ms)
        for broker in self._mirrors():
            if not broker.is_serving:
                dispatcher.dispatch(broker.node_id, Tick())
        self.on_metadata()
        pending = self.state.log.pending_topics
        assert pending is not None
        if not self._is_bootstrapped and all(
            map(self.state.image.is_active, pending.expected_brokers)
        ):
            self._is_bootstrapped = True
            self._greenlets.append(gevent.spawn(self._bootstrap, pending))

    def _bootstrap(self, pending: PendingTopics) -> None:
        """Create the ACLs and the topics of the topology."""
        acls = self.plan.topology.security.authorization.acls
        if acls:
            self._ask(create_acls_request(acls), m.CreateAclsResponse)
        topics = [creatable_topic(spec) for spec in pending.topics]
        if not topics:
            return
        create = m.CreateTopicsRequest(topics=topics, timeout_ms=BOOTSTRAP_TIMEOUT_MS)
        answer = self._ask(create, m.CreateTopicsResponse)

        def take() -> None:
            for each in answer.topics:
                if each.error_code:
                    error = error_of(each.error_code)
                    pending.refused[each.name] = ApiError(error, each.error_message)
            pending.topics = ()

        self._run_command(take)

    def _mirrors(self) -> list[MirrorBroker]:
        """The mirrors of the brokers that run."""
        return [x for x in self.dispatcher.brokers() if isinstance(x, MirrorBroker)]

    # ------------------------------------------------------------------------- the ends of logs

    def _look(self) -> None:
        """Ask the brokers from time to time where their logs end, and what is open in them."""
        while True:
            gevent.sleep(ENDS_EVERY_S)
            began_ms = self.now_ms()
            greenlets = [gevent.spawn(self._look_at, each) for each in self._mirrors()]
            gevent.joinall(greenlets)
            if all(each.value for each in greenlets):
                self.looked_ms = began_ms
            if self.transactions is not None:
                serving = filter(self._is_serving, self._mirrors())
                asked = [(self._brokers[each.node_id], each.led) for each in serving]
                self.transactions.ask(asked, are_all=len(asked) == len(self._brokers))
            self._run_command(lambda: None)  # conditions are tested again

    def _is_serving(self, broker: MirrorBroker) -> bool:
        state = self.dispatcher.processes[broker.node_id].state
        return broker.is_serving and state is ProcessState.UP

    def _look_at(self, broker: MirrorBroker) -> bool:
        """Ask a broker where its logs end.  Returns False if it serves, and does not answer."""
        if not self._is_serving(broker):
            return True
        replicas = broker.replicas.all()
        hosted = [(each.topic, each.partition) for each in replicas]
        try:
            ends = read_ends(self._brokers[broker.node_id], hosted, broker.led)
        except NoAnswer:
            return False
        broker.report(ends)
        return True

    # -------------------------------------------------------------------------- users' requests

    def ask(self, request: PeerRequest) -> None:
        """Send a request of the runtime to the active controller; its answer comes later."""
        if isinstance(request.body, m.ElectLeadersRequest):
            self.state.expect_election(request.body)

        def wait_for_answer() -> None:
            answer = self._ask(request.body, Message)
            response = PeerResponse(CONTROLLER_ID, request.request_id, answer)
            on_answer = self.dispatcher.on_answer
            assert on_answer is not None
            self._run_command(lambda: on_answer(response))

        self._greenlets.append(gevent.spawn(wait_for_answer))

    def _ask(self, body: Message, kind: type[T]) -> T:
        """The controller's answer, once the mirrors have the metadata that it had then."""
        answer = self._requests.ask(body, kind)
        known = self._requests.ask(describe_quorum(), m.DescribeQuorumResponse)
        end_offset = known.topics[0].partitions[0].high_watermark
        with gevent.Timeout(APPLY_LIMIT_S, exception=False):
            while self.state.next_offset < end_offset:
                gevent.sleep(APPLY_POLL_S)
        return answer

    def ask_broker(self, broker_id: int, request: PeerRequest) -> None:
        """Send a request of the runtime to a broker, over a connection of its own: some answers
        take long.  Without an answer, the runtime waits for one in vain."""

        def wait_for_answer() -> None:
            node = self.requests(broker_id)
            try:
                answer = node.ask(request.body, Message)
            except NoAnswer as error:
                self.log(str(error))
                return
            finally:
                node.close()
            response = PeerResponse(broker_id, request.request_id, answer)
            on_answer = self.dispatcher.on_answer
            assert on_answer is not None
            self._run_command(lambda: on_answer(response))

        self._greenlets.append(gevent.spawn(wait_for_answer))

    def move(self, topic: str, partition: int, leader: int) -> None:
        """Give a partition another leader, by an order of its replicas that lasts only until the
        election."""
        self._greenlets.append(
            gevent.spawn(move_leader, self._requests, self.state, topic, partition, leader)
        )

    # ------------------------------------------------------------------------------- the clock

    def pass_deadlines(self) -> None:
        """Bring the clock up to date; it never falls behind the machine's, as Kafka's does not."""
        self.dispatcher.at(self.clock.at(time.monotonic_ns() // 1000))

    def pause_clock(self) -> None:
        raise ClusterError(NO_STEERING)

    def set_speed(self, speed: float) -> None:
        raise ClusterError(NO_STEERING)

    def pause_at(self, is_wanted: Callable[[Note], bool]) -> Future[Note]:
        raise ClusterError(NO_STEERING)


def inner_login(processes: KafkaProcesses) -> InnerLogin | None:
    """How the mirror logs in; None if the nodes ask for no login."""
    login = processes.inner_login
    return None if login is None else InnerLogin(*login)


def _never_stepped(process: Process) -> Process:
    """The process with a new simulated node, which never steps: its parts are empty."""
    process.node = process.build_node()
    return process


NO_STEERING: Final = "the clock of a real Kafka cannot be paused, stepped or slowed down"
