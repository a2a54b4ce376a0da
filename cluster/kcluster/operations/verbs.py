"""The operations of users on a cluster, in either driver: checks, then the change, without waiting.

Owns: the conditions for each operation, the text of a refusal, what a verb does to the process of a
node or of a client.  Never: waits for the consequences (`Cluster` and `VirtualDriver` do).
Kafka: kill, iptables, kafka-leader-election.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from kcluster.config.files.problems import nearest, unknown
from kcluster.config.topology.sasl import token_settings
from kcluster.config.topology.specs import MAX_PORT, BrokerSpec
from kcluster.config.topology.values import client_host_problem, unknown_version
from kcluster.contract import CONTROLLER_ID, EndSessions, MoveLeader, Rng
from kcluster.deaths import DeathKind, ProcessState
from kcluster.events.brokers import BrokerReaddressed, CertificateReplaced, DiskFull
from kcluster.events.clients import GroupDeleted, OffsetSpec, PartitionOffset, RebalanceRequested
from kcluster.events.partitions import RecordsDeleted
from kcluster.events.security import TokensExpired
from kcluster.faults.reports import RuleStatus, status
from kcluster.faults.rules import Rule, RuleBook, RuleError
from kcluster.metadata.image import TopicImage
from kcluster.metadata.placement import coordinator_partition
from kcluster.metadata.records import PartitionRegistration
from kcluster.operations.admin import TIMEOUT_MS, Admin, OnEnd
from kcluster.operations.asking import Asking, elect_request
from kcluster.operations.errors import ClusterError, WrongName
from kcluster.operations.group_calls import (
    Calls,
    GroupCall,
    GroupCallRefused,
    GroupMember,
    delete,
    evict,
    evicted,
    offsets_reset,
    rebalance,
    reset,
)
from kcluster.operations.links import Links
from kcluster.operations.logs import fewest_copies
from kcluster.operations.node_sets import NodeSets
from kcluster.operations.processes import RunningClient, RunningProcess
from kcluster.operations.programs import NoPrograms, RunningPrograms
from kcluster.operations.python_values import MAX_INT, number_in, text_in, wrong
from kcluster.operations.settled import Settled
from kcluster.operations.states import ACTS_ON, Chosen, StateVerb, WrongState, choose
from kcluster.principals import USER_TYPE, Principal
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.names import GROUP_METADATA_TOPIC
from kcluster.protocol.releases import Release, find_release
from kcluster.runtime.build import Plan, add_broker
from kcluster.runtime.dispatch import Dispatcher
from kcluster.runtime.gate import FaultGate
from kcluster.runtime.node_gate import NodeGate
from kcluster.security.certificates import FIRST, BrokerCertificate, CertificateState
from kcluster.security.sasl.mechanisms import OAUTHBEARER

NAMES_SHOWN: Final = 12
"""The most topics that an error lists."""
SHUT_DOWN_LIMIT_S: Final = 30.0
"""The limit of a controlled shutdown; a longer one is ended by a kill."""


class Verbs:
    """Operations on one cluster, called between two dispatches in the driver's thread."""

    def __init__(self, plan: Plan, dispatcher: Dispatcher) -> None:
        self.settled = Settled(dispatcher)
        self.links = Links(dispatcher)
        self.network = NodeSets(plan, dispatcher, self.links, self.settled)
        self._plan = plan
        self._dispatcher = dispatcher
        self._asking = Asking(dispatcher)
        self.admin = Admin(self._asking)
        self.programs: RunningPrograms = NoPrograms()
        """The users' programs beside the cluster."""
        self.clients: dict[int, RunningClient] = {}
        """The processes of a workload's clients, by their ids in the fabric."""

    # ------------------------------------------------------------------------ processes

    def choose(self, verb: StateVerb, nodes: Sequence[int], can_wait: bool = True) -> Chosen:
        """The nodes on which the verb acts now, and the nodes that it leaves alone."""
        met = [(node, self._running(node).state_for(verb)) for node in nodes]
        return choose(verb, met, can_wait)

    def chosen(self, verb: StateVerb, nodes: Sequence[int], can_wait: bool = True) -> Chosen:
        """The nodes on which the verb acts now; WrongState if a single node is named and its state
        does not allow the verb."""
        chosen = self.choose(verb, nodes, can_wait)
        if len(nodes) == 1 and not chosen.nodes:
            ((node, state),) = chosen.left_alone
            raise WrongState(f"{self._running(node).label} is {state}", chosen.left_alone)
        return chosen

    def on_each(
        self,
        verb: StateVerb,
        nodes: Sequence[int],
        operation: Callable[[int], None],
        can_wait: bool = True,
    ) -> Chosen:
        """Call `operation(node)` for each node that `chosen` returns; ClusterError, when all other
        nodes are done, if the operation was refused for one."""
        chosen = self.chosen(verb, nodes, can_wait)
        refusals: list[ClusterError] = []
        for node in chosen.nodes:
            try:
                operation(node)
            except ClusterError as error:
                refusals.append(error)
        if len(refusals) == 1:
            raise refusals[0]
        if refusals:
            raise ClusterError("; ".join(map(str, refusals)))
        return chosen

    def kill(self, broker_id: int, how: DeathKind) -> None:
        """End a process, or ask it to shut down (`clean`).  The controller's id is allowed here and
        in the other methods: after its next start, another voter is active, with this metadata
        log."""
        self._process(broker_id, StateVerb.KILL).end(how)

    def start(self, broker_id: int, kafka_version: str | None = None) -> None:
        """Start a process that is down; with a release, it runs as that release from now on."""
        self._process(broker_id, StateVerb.START).start(kafka_version)

    def restore(self, broker_id: int) -> None:
        """Undo an operation on a process: resume it if it is paused, start it if it is down, or
        start it as soon as its controlled shutdown is over."""
        self._running(broker_id).restore()

    def restore_all(self) -> Iterator[str]:
        """Restore every process; yields the reason for each process that cannot be restored.  A
        client that was killed stays dead."""
        for client in self.clients.values():
            if client.state is ProcessState.PAUSED:
                client.resume()
        for node_id in (self.settled.controller_id, *self._plan.addresses):
            try:
                self.restore(node_id)
            except ClusterError as error:
                yield str(error)

    def readdress(self, broker_id: int) -> None:
        """Give a broker that is down another port, which clients learn from metadata."""
        self._check_state(broker_id, ProcessState.DOWN)
        old = self._plan.endpoints[self.broker(broker_id)]
        ports = self._dispatcher.outlet.new_ports(broker_id, len(old))
        moved = tuple(replace(one, port=port) for one, port in zip(old, ports, strict=True))
        self._plan.endpoints[broker_id] = moved
        self._dispatcher.note(BrokerReaddressed(broker_id, moved[0].host, moved[0].port))

    def advertise(self, broker_id: int, host: str, port: int, on_end: OnEnd) -> None:
        """Give clients of a broker's first listener this address: from its next start on, and now
        if it runs, by an amended registration.  The address at which it listens does not change.

        DIFFERS: in Kafka, advertised.listeners changes only by a restart of a KRaft broker.
        """
        number_in("broker_id", broker_id, 0, MAX_INT, is_whole=True)
        number_in("port", port, 1, MAX_PORT, is_whole=True)
        problem = client_host_problem(text_in("host", host))
        if problem is not None:
            raise ClusterError(problem)
        first, *others = self._plan.endpoints[self.broker(broker_id)]
        endpoints = (replace(first, host=host, port=port), *others)
        self._plan.endpoints[broker_id] = endpoints
        node = self._dispatcher.broker(broker_id)
        if node is not None:
            node.advertise(endpoints)
        registration = self.settled.image.brokers.get(broker_id)
        if node is None or registration is None:
            on_end("")
        else:
            cluster_id = self._plan.cluster_id
            self.admin.amend_registration(cluster_id, registration, endpoints, on_end)

    def add_broker(self, broker_id: int, rack: str | None = None) -> None:
        """Add a new broker, with an empty disk, to the running cluster."""
        if broker_id in self._dispatcher.processes:
            raise ClusterError(f"the id {broker_id} is, or was, another broker's")
        listeners = self._plan.topology.listeners
        spec = BrokerSpec(broker_id, rack=rack, listeners=listeners)
        ports = self._dispatcher.outlet.new_ports(broker_id, len(spec.all_listeners))
        process = add_broker(self._plan, spec, ports)
        self._dispatcher.processes[broker_id] = process
        self._dispatcher.start(broker_id)

    def remove_broker(self, broker_id: int, on_end: OnEnd) -> None:
        """Unregister a broker that is down, for good.  Its replicas stay assigned to it, as in
        Kafka: reassign them first."""
        self._check_state(broker_id, ProcessState.DOWN)
        self._dispatcher.processes[self.broker(broker_id)].is_removed = True
        del self._plan.endpoints[broker_id]
        self.admin.unregister(broker_id, on_end)

    def fill_disk(self, broker_id: int) -> None:
        """Fill a broker's only log directory: the broker halts, and cannot start until space is
        freed.  Kafka: LogDirFailureChannel, "all log dirs have failed"."""
        self._check_state(broker_id, ProcessState.UP, ProcessState.PAUSED)
        self._plan.disks[self.broker(broker_id)].is_full = True
        self._dispatcher.note(DiskFull(broker_id))
        self._dispatcher.take_down(broker_id, DeathKind.KILL)

    def replace_disk(self, broker_id: int) -> None:
        """Replace the disk of a broker that is down by an empty one."""
        self._check_state(self.broker(broker_id), ProcessState.DOWN)
        self._dispatcher.replace_disk(broker_id)
        self.free_disk(broker_id)

    def free_disk(self, broker_id: int) -> None:
        """Free space on a broker's disk, so that it can start."""
        self._plan.disks[self.broker(broker_id)].is_full = False

    def free_disks(self) -> None:
        """Free space on every broker's disk."""
        for disk in self._plan.disks.values():
            disk.is_full = False

    def replace_certificate(self, broker_id: int, state: CertificateState) -> None:
        """Show another certificate to a broker's new connections; open ones keep theirs, as in
        Kafka (KIP-226)."""
        topology, broker_id = self._plan.topology, self.broker(broker_id)
        if not any(one.protocol.has_tls for one in self._plan.endpoints[broker_id]):
            raise ClusterError(f"broker {broker_id} has no listener with TLS")
        if not topology.makes_certificates(broker_id):
            advice = "change ssl.keystore.location of its listener instead"
            raise ClusterError(f"broker {broker_id} has a keystore of its own: {advice}")
        certificates = self._plan.certificates
        number = certificates.get(broker_id, FIRST).number + 1
        certificates[broker_id] = BrokerCertificate(state, number)
        self._dispatcher.note(CertificateReplaced(broker_id, state))

    def renew_certificates(self) -> Iterator[int]:
        """Replace every certificate that clients refuse; the brokers."""
        for broker_id, certificate in sorted(self._plan.certificates.items()):
            if certificate.state is not CertificateState.VALID:
                self.replace_certificate(broker_id, CertificateState.VALID)
                yield broker_id

    def end_sessions(self, broker_ids: Sequence[int], user: str | None = None) -> None:
        """End the sessions of brokers' clients: each must log in again before anything else.
        Brokers that are down are left alone, unless all are.  `user`: None for all."""
        for broker_id in broker_ids:
            if not any(one.protocol.has_sasl for one in self._plan.endpoints[broker_id]):
                raise ClusterError(f"broker {broker_id} has no listener with SASL")
        running = [each for each in broker_ids if self.state(each) is not ProcessState.DOWN]
        for broker_id in running or broker_ids:
            self._check_state(broker_id, ProcessState.UP, ProcessState.PAUSED)
            self._dispatcher.dispatch(broker_id, EndSessions(user))

    def expire_tokens(self, user: str) -> list[bytes]:
        """Expire a user's tokens of OAUTHBEARER and their sessions; returns the HMACs of its
        delegation tokens, which the controller is to expire.  ClusterError if it has neither."""
        settings = token_settings(self._plan.topology.config)
        tokens = self.settled.image.delegation_tokens.values() if settings is not None else ()
        delegated = [token for token in tokens if token.owner == Principal(USER_TYPE, user)]
        accepted = self._plan.bearer_tokens.expire(user)
        if not accepted and not delegated:
            text = "has no delegation token, and has not logged in by OAUTHBEARER"
            raise ClusterError(f"user {user} {text}")
        self._dispatcher.note(TokensExpired(user, accepted, len(delegated)))
        if accepted:
            for node in self._dispatcher.brokers():
                if node.logins is not None:
                    self._dispatcher.dispatch(node.node_id, EndSessions(user, OAUTHBEARER))
        return [] if settings is None else [settings.hmac_of(one.token_id) for one in delegated]

    def pause(self, broker_id: int) -> None:
        """Pause a process, as by SIGSTOP."""
        self._process(broker_id, StateVerb.PAUSE).pause()

    def resume(self, broker_id: int) -> None:
        """Resume a paused process."""
        self._process(broker_id, StateVerb.RESUME).resume()

    # -------------------------------------------------------------------------- leaders

    def leader(self, topic: str, partition: int) -> int:
        """The broker that leads a partition."""
        leader = self.partition(topic, partition).leader
        if leader < 0:
            raise ClusterError(f"{topic}-{partition} has no leader")
        return leader

    def coordinator(self, group: str) -> int:
        """The broker that coordinates a group."""
        image = self.settled.image
        if GROUP_METADATA_TOPIC not in image.topics:
            raise ClusterError(f"group {group} has no coordinator: no group has been used yet")
        count = len(image.topics[GROUP_METADATA_TOPIC].partitions)
        return self.leader(GROUP_METADATA_TOPIC, coordinator_partition(group, count))

    def move(self, topic: str, partition: int, to: int) -> None:
        """Ask the controller to make `to` the leader."""
        self.broker(to)
        found = self.partition(topic, partition)
        name, members = f"{topic}-{partition}", ", ".join(map(str, found.isr)) or "empty"
        if to not in found.replicas:
            replicas = ", ".join(map(str, found.replicas))
            raise WrongName(f"broker {to} has no replica of {name}, which is on {replicas}")
        if to not in found.isr:
            raise ClusterError(f"broker {to} is not in the ISR of {name} ({members})")
        self._dispatcher.dispatch(self.settled.controller_id, MoveLeader(topic, partition, to))

    def elect(
        self, topic: str, partition: int, unclean: bool, on_answer: Callable[[object], None]
    ) -> None:
        """Ask the controller for an election; `on_answer(ElectLeadersResponse)`."""
        self.partition(topic, partition)
        self._asking.ask(elect_request(topic, partition, unclean), on_answer)

    def check_elected(self, topic: str, partition: int, answer: Any) -> None:
        """Raise ClusterError with the error of an ElectLeadersResponse, if it has one."""
        results = [
            result
            for chosen in answer.replica_election_results
            for result in chosen.partition_result
        ]
        code = results[0].error_code if results else answer.error_code
        if code not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED):
            error = next(known for known in ErrorCode if known == code)
            text = (results[0].error_message if results else None) or error.text
            raise ClusterError(f"{topic}-{partition}: {error.name}: {text}")

    def delete_records(self, topic: str, partition: int, before: int, on_end: OnEnd) -> None:
        """Ask a partition's leader to delete the records before an offset; -1: all that are
        committed."""
        leader = self.leader(topic, partition)
        if self._dispatcher.broker(leader) is None:
            raise ClusterError(f"{topic}-{partition}: its leader, broker {leader}, is down")
        kind = m.DeleteRecordsRequest
        wanted = kind.DeleteRecordsTopic(topic, [kind.DeleteRecordsPartition(partition, before)])

        def on_answer(answer: object) -> None:
            assert isinstance(answer, m.DeleteRecordsResponse), answer
            result = answer.topics[0].partitions[0]
            if result.error_code:
                on_end(error_of(result.error_code).name)
                return
            self._dispatcher.note(RecordsDeleted(topic, partition, result.low_watermark))
            on_end("")

        self._asking.ask(kind(topics=[wanted], timeout_ms=TIMEOUT_MS), on_answer, leader)

    # --------------------------------------------------------------------------- groups

    def evict(self, group: str, name: str, on_end: OnEnd) -> None:
        """Make members leave a group in their name.  `name`: a member's id, static id or client id,
        or `all`."""

        def note(chosen: Sequence[GroupMember]) -> None:
            self._dispatcher.note(evicted(group, name, chosen))

        self._call_group(group, evict(group, name, note), on_end)

    def rebalance(self, group: str, on_end: OnEnd) -> None:
        """Make a group rebalance, by a member that joins and leaves at once."""
        phantom_id = f"rebalance-{self._dispatcher.now_us}"

        def ended(refusal: str) -> None:
            if not refusal:
                self._dispatcher.note(RebalanceRequested(group))
            on_end(refusal)

        self._call_group(group, rebalance(group, phantom_id), ended)

    def delete_group(self, group: str, on_end: OnEnd) -> None:
        """Delete a group without members, with its offsets."""

        def note() -> None:
            self._dispatcher.note(GroupDeleted(group))

        self._call_group(group, delete(group, note), on_end)

    def reset_offsets(
        self, group: str, topic: str, partition: int | None, to: OffsetSpec | int, on_end: OnEnd
    ) -> None:
        """Give a group without members other offsets of a topic.  `partition` None: of all its
        partitions; `to`: an end of the log, or an offset."""
        self.partition(topic, partition or 0)

        def note(offsets: tuple[PartitionOffset, ...]) -> None:
            self._dispatcher.note(offsets_reset(group, topic, partition, to, offsets))

        self._call_group(group, reset(group, topic, partition, to, note), on_end)

    def _call_group(self, group: str, calls: Calls, on_end: OnEnd) -> None:
        """Send these calls, each when the previous one was answered."""
        coordinator = self.coordinator(group)
        dispatcher = self._dispatcher

        def next_call(answer: object) -> None:
            try:
                call = calls.send(answer)
            except StopIteration:
                on_end("")
            except GroupCallRefused as refusal:
                on_end(str(refusal))
            else:
                broker = coordinator if call.broker is None else call.broker
                if self._dispatcher.broker(broker) is None:
                    on_end(f"broker {broker} is down")
                    return
                self._asking.ask(call.request, answered(call), broker)
                if not call.is_awaited:
                    next_call(None)

        def answered(call: GroupCall) -> Callable[[object], None]:
            def on_answer(answer: object) -> None:
                if call.is_awaited:  # between two dispatches, so that the next call can be sent
                    dispatcher.later(dispatcher.now_us, lambda: next_call(answer))

            return on_answer

        next_call(None)

    # ---------------------------------------------------------------------------- rules

    def _stream_of_rule(self, name: str) -> Rng:
        return self._plan.chance.stream(f"rule {name}")

    def add_rule(self, rule: Rule) -> str:
        """Add a rule of protocol faults; returns its name."""
        for broker_id in rule.brokers:
            self.broker(broker_id)
        gate = self._dispatcher.gate
        if gate is None:
            gate = FaultGate(self._dispatcher, RuleBook(self._stream_of_rule))
        try:
            name = gate.add(rule)
        except RuleError as error:
            raise ClusterError(str(error)) from None
        self._dispatcher.gate = gate
        return name

    def add_node_rule(self, rule: Rule) -> str:
        """Add a rule for requests between nodes; returns its name."""
        for node_id in (*rule.sources, *rule.brokers):
            if node_id != CONTROLLER_ID:
                self.broker(node_id)
        gate = self._dispatcher.node_gate
        if gate is None:
            book = RuleBook(self._stream_of_rule, "node-rule")
            gate = self._dispatcher.node_gate = NodeGate(self._dispatcher, book)
        return gate.add(rule)

    def remove_rule(self, name: str) -> None:
        """Remove a rule: held messages are delivered, connections that it silenced are closed."""
        text_in("name", name)
        dispatcher = self._dispatcher
        gate, node_gate = dispatcher.gate, dispatcher.node_gate
        if node_gate is not None and name in node_gate.book.entries:
            node_gate.remove(name)
            if node_gate.is_idle:
                dispatcher.past_node_acts += node_gate.acts
                dispatcher.node_gate = None
            return
        if gate is None or name not in gate.book.entries:
            names = [rule.name for rule in self.rules()]
            raise ClusterError(f"rule {name}: {unknown('rule', name, names)}")
        gate.remove(name)
        if gate.is_idle:
            dispatcher.gate = None

    def clear_rules(self) -> None:
        """Remove all rules."""
        for rule in self.rules():
            self.remove_rule(rule.name)

    def rules(self) -> tuple[RuleStatus, ...]:
        """The rules in force, in order, and the number of times that each has applied.  Rules
        between nodes come last."""
        gates = (self._dispatcher.gate, self._dispatcher.node_gate)
        return tuple(found for gate in gates if gate is not None for found in status(gate.book))

    # ---------------------------------------------------------------------------- names

    def broker(self, broker_id: int) -> int:
        """The broker with this id; ClusterError if there is none."""
        if broker_id not in self._plan.addresses:
            for known, (_, port) in self._plan.addresses.items():
                if port == broker_id:
                    raise WrongName(f"{port} is the port of broker {known}; use the id")
            there = ", ".join(map(str, self._plan.addresses))
            raise WrongName(f"there is no broker {broker_id}; the brokers are {there}")
        return broker_id

    def node(self, node_id: int) -> int:
        """The broker or the controller with this id; ClusterError if there is none."""
        return node_id if node_id == self.settled.controller_id else self.broker(node_id)

    def partition(self, topic: str, partition: int) -> PartitionRegistration:
        """A partition in the controller's view."""
        image = self.settled.image
        if topic not in image.topics:
            raise WrongName(_no_topic(topic, image.topics, f"-{partition}"))
        registration = image.partition(topic, partition)
        if registration is None:
            count = len(image.topics[topic].partitions)
            raise WrongName(f"there is no partition {partition} of {topic}, which has {count}")
        return registration

    def fewest_copies(self) -> int:
        """The number of disks whose log reaches what is committed, of the partition that has
        fewest."""
        return fewest_copies(self._plan, self._dispatcher)

    def topic(self, name: str) -> TopicImage:
        """A topic in the controller's view."""
        topics = self.settled.image.topics
        if name not in topics:
            raise WrongName(_no_topic(name, topics))
        return topics[name]

    def state(self, node_id: int) -> ProcessState:
        """The state of the process of a broker, of the controller, or of a workload's client."""
        return self._running(node_id).state

    def _running(self, node_id: int) -> RunningProcess:
        """The process of a node, whatever its state; ClusterError if it is not ours."""
        client = self.clients.get(node_id)
        if client is not None:
            return WorkloadProcess(client)
        name = self._dispatcher.fabric.clients.get(node_id)
        if name is not None:
            text = "is no client of a scenario's workload; only their processes are here"
            raise ClusterError(f"client {name or node_id} {text}")
        is_controller = node_id == self.settled.controller_id
        return NodeProcess(self._plan, self._dispatcher, self.node(node_id), is_controller)

    def _process(self, node_id: int, verb: StateVerb) -> RunningProcess:
        """A process on which the verb has an effect; ClusterError if its state is another."""
        process = self._running(node_id)
        _refuse_unless(process, process.state_for(verb), ACTS_ON[verb])
        return process

    def _check_state(self, node_id: int, *allowed: ProcessState) -> None:
        process = self._running(node_id)
        _refuse_unless(process, process.state, allowed)


class NodeProcess:
    """The process of a broker or of the controller, as RunningProcess."""

    def __init__(
        self, plan: Plan, dispatcher: Dispatcher, node_id: int, is_controller: bool
    ) -> None:
        self._plan = plan
        self._dispatcher = dispatcher
        self._id = node_id
        self._is_controller = is_controller

    @property
    def label(self) -> str:
        return "the controller" if self._is_controller else f"broker {self._id}"

    @property
    def state(self) -> ProcessState:
        return self._dispatcher.processes[self._id].state

    def state_for(self, verb: StateVerb) -> ProcessState:
        return self.state

    def end(self, how: DeathKind) -> None:
        if how is DeathKind.CLEAN and not self._is_controller:
            self._dispatcher.shut_down(self._id, int(SHUT_DOWN_LIMIT_S * 1e6))
        else:
            self._dispatcher.take_down(self._id, how)

    def start(self, kafka_version: str | None) -> None:
        disk = self._plan.disks.get(self._id)
        if disk is not None and disk.is_full:
            raise ClusterError(f"{self.label} cannot start: its disk is full")
        if kafka_version is not None:
            self._plan.releases[self._id] = release(kafka_version)
        self._dispatcher.start(self._id)

    def pause(self) -> None:
        self._dispatcher.pause(self._id)

    def resume(self) -> None:
        self._dispatcher.resume(self._id)

    def restore(self) -> None:
        if self.state is ProcessState.PAUSED:
            self.resume()
        if self.state is ProcessState.DOWN:
            self.start(None)
        elif self._dispatcher.is_shutting_down(self._id):
            self._dispatcher.start_after_shutdown(self._id)


class WorkloadProcess:
    """The process of a workload's client, as RunningProcess."""

    def __init__(self, client: RunningClient) -> None:
        self._client = client

    @property
    def label(self) -> str:
        return f"client {self._client.name}"

    @property
    def state(self) -> ProcessState:
        return self._client.state

    def state_for(self, verb: StateVerb) -> ProcessState:
        return self.state

    def end(self, how: DeathKind) -> None:
        if how is DeathKind.KILL:
            self._client.kill()
        elif how is DeathKind.CLEAN:
            self._client.stop()
        else:
            raise ClusterError(f"{self.label} has no disk: {how} is for brokers")

    def start(self, kafka_version: str | None) -> None:
        if kafka_version is not None:
            raise ClusterError(f"{self.label} has no release of Kafka")
        self._client.start()

    def pause(self) -> None:
        self._client.pause()

    def resume(self) -> None:
        self._client.resume()

    def restore(self) -> None:
        if self.state is ProcessState.PAUSED:
            self.resume()
        elif self.state is ProcessState.DOWN:
            self.start(None)


def _refuse_unless(
    process: RunningProcess, state: ProcessState, allowed: Collection[ProcessState]
) -> None:
    if state not in allowed:
        raise ClusterError(f"{process.label} is {state}")


def _no_topic(topic: str, topics: Collection[str], suffix: str = "") -> str:
    """The text of a refusal: the nearest topic name, with the suffix, or the existing topics."""
    meant = nearest(topic, topics)
    if meant is not None:
        return f"there is no topic {topic}; did you mean {meant}{suffix}?"
    names = sorted(topics)
    more = f", … and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    shown = ", ".join(names[:NAMES_SHOWN]) or "none"
    return f"there is no topic {topic!r}; the topics are: {shown}{more}"


def release(kafka_version: str) -> Release:
    """The release with this name; ClusterError if it is unknown."""
    known = find_release(kafka_version)
    if known is None:
        raise wrong("kafka_version", kafka_version, unknown_version(kafka_version))
    return known
