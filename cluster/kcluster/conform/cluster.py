"""A running Kafka-compatible cluster, asked over TCP.

Owns: what is known of the cluster before the first case, connections by name, their limits in
time.  Never: knows a case.  Kafka: NetworkClient, Admin.describeCluster.

Connecting, TLS and logins are those of the proxy (proxy/upstream.py).  Everything waits in the
calling greenlet.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final, TypeVar

import gevent
import gevent.socket
from msgspec import Struct

from kcluster.conform.broker_ids import BrokerIds
from kcluster.conform.systems import CLOSED, SASL, SILENT
from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.errors import ErrorCode, ProtocolError
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from kcluster.protocol.names import CLUSTER_METADATA_TOPIC
from kcluster.proxy.addresses import Address
from kcluster.proxy.streams import SIZE, ByteEnd
from kcluster.proxy.upstream import Upstream, UpstreamError

LIMIT_MS: Final = 10_000
"""How long the cluster may take for an answer before the first case."""
MAX_FRAME_BYTES: Final = 64 << 20
CLIENT_ID: Final = "kcluster-conform"
_CONFIGS_READ: Final = (
    "auto.create.topics.enable", "default.replication.factor", "group.initial.rebalance.delay.ms",
    "min.insync.replicas", "num.partitions",
)  # fmt: skip
_ANSWERED: Final = {f"{one.name}Response": ApiKey(key) for key, one in APIS.items()}
FEATURES_VERSION: Final = 3
"""The oldest version of ApiVersions with the finalized features."""
_READ_SIZE: Final = 1 << 16
_WOULD_BLOCK: Final = (BlockingIOError, ssl.SSLWantReadError)

Answer = TypeVar("Answer", bound=m.Message)
Shown = TypeVar("Shown")


class NotConformable(Exception):
    """The error for a cluster that cannot be asked at all; str() is one line."""


class ClusterFacts(Struct, frozen=True):
    """What is known of a cluster before the first case."""

    cluster_id: str
    brokers: Mapping[int, Address]
    """By id."""
    controller: int
    """The id of the broker that the first one names as the controller."""
    versions: Mapping[int, tuple[int, int]]
    """The versions that the first broker lists, by API key."""
    features: Mapping[str, int]
    """The finalized levels, such as that of metadata.version."""
    configs: Mapping[str, str]
    """The values of some of the first broker's configs; empty if it does not show them."""
    has_authorizer: bool
    tokens: int | None
    """The error with which it answers this client's DescribeDelegationToken; None if it does not
    answer."""
    voters: frozenset[int]
    """The ids of the controllers that vote; empty if the cluster does not show them."""


class AskedCluster:
    """The brokers of a cluster as the System of the cases."""

    settle_ms = 100
    """Replication and metadata take this long on a busy machine."""

    def __init__(self, upstream: Upstream, facts: ClusterFacts, first: int | None) -> None:
        """`first`: the id of broker 1 of the cases; None: the smallest one."""
        self._upstream = upstream
        self._without_login = upstream.without_login()
        self.facts = facts
        self.ids = BrokerIds(facts.brokers, first)
        self.addresses: dict[int, Address] = {
            self.ids.to_case(id_): address for id_, address in sorted(facts.brokers.items())
        }
        self.endpoints: dict[int, dict[str, Address]] = {id_: {} for id_ in self.addresses}
        self.controller_ports: dict[int, int] = {}
        self._ends: dict[tuple[str, int], ByteEnd] = {}
        self._buffers: dict[tuple[str, int], bytearray] = {}

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep_ms(self, duration_ms: int) -> None:
        gevent.sleep(duration_ms / 1000)

    def newest(self, api: ApiKey) -> int:
        return self.facts.versions.get(api, (-1, -1))[1]

    def connect(self, on: str, broker: int, listener: str) -> None:
        self.close(on, broker)
        upstream = self._without_login if listener == SASL else self._upstream
        self._ends[on, broker] = upstream.connect(self.addresses[broker])
        self._buffers[on, broker] = bytearray()

    def send(self, on: str, broker: int, frame: bytes) -> None:
        """Send one frame with its length; open the connection if there is none.  Failures show in
        `receive`."""
        with suppress(OSError, UpstreamError):
            if (on, broker) not in self._ends:
                self.connect(on, broker, "")
            _write(self._ends[on, broker], frame)

    def receive(self, on: str, broker: int, limit_ms: int) -> bytes | str:
        end = self._ends.get((on, broker))
        if end is None:
            return CLOSED
        buffer = self._buffers[on, broker]
        try:
            with gevent.Timeout(limit_ms / 1000):
                return _next_frame(end, buffer)
        except gevent.Timeout:
            return SILENT
        except (OSError, EOFError):
            self.close(on, broker)
            return CLOSED

    def close(self, on: str, broker: int) -> None:
        end = self._ends.pop((on, broker), None)
        if end is not None:
            end.close()

    def close_all(self, broker: int) -> None:
        for on, to in tuple(self._ends):
            if to == broker:
                self.close(on, to)

    def operate(self, verb: str, broker: int) -> None:
        raise AssertionError(f"cannot {verb} broker {broker} of somebody's cluster")


def _write(end: ByteEnd, frame: bytes) -> None:
    left = memoryview(frame)
    while left:
        try:
            left = left[end.write([left]) :]
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            gevent.socket.wait_write(end.fileno(), LIMIT_MS / 1000)


def _next_frame(end: ByteEnd, buffer: bytearray) -> bytes:
    """The next frame, without its length; EOFError at the end of the connection."""
    room = memoryview(bytearray(_READ_SIZE))
    while len(buffer) < SIZE.size or len(buffer) < SIZE.size + SIZE.unpack_from(buffer)[0]:
        if len(buffer) >= SIZE.size and not 0 <= SIZE.unpack_from(buffer)[0] <= MAX_FRAME_BYTES:
            raise EOFError("no frame of Kafka's protocol")
        try:
            taken = end.recv_into(room)
        except _WOULD_BLOCK:
            gevent.socket.wait_read(end.fileno())
            continue
        if not taken:
            raise EOFError("the connection has ended")
        buffer += room[:taken]
    size = SIZE.size + SIZE.unpack_from(buffer)[0]
    frame = bytes(buffer[SIZE.size : size])
    del buffer[:size]
    return frame


# ------------------------------------------------------------------------------ before a case


class _Preliminary:
    """One connection, for the questions before the first case."""

    def __init__(self, end: ByteEnd, place: str, limit_ms: int) -> None:
        self._end = end
        self._limit_ms = limit_ms
        self._place = place
        self.versions: dict[int, tuple[int, int]] = {}

    def list_versions(self) -> None:
        """Ask for the versions of all APIs."""
        listed = self.ask(m.ApiVersionsResponse, m.ApiVersionsRequest(), 0)
        self.versions = {one.api_key: (one.min_version, one.max_version) for one in listed.api_keys}
        if ApiKey.METADATA not in self.versions:
            raise NotConformable(f"{self._place} does not list Metadata, which every case needs")

    def ask(self, expected: type[Answer], body: m.Message, version: int = -1) -> Answer:
        """The answer in the newest version that both sides know; NotConformable without one."""
        api = _ANSWERED[expected.__name__]
        name = APIS[api].name
        if version < 0:
            version = min(self.versions[api][1], APIS[api].versions[1])
        frame = b"".join(encode_request_frame(api, version, 1, CLIENT_ID, body))
        try:
            with gevent.Timeout(self._limit_ms / 1000):
                _write(self._end, frame)
                received = _next_frame(self._end, bytearray())
            decoded = decode_response_frame(api, version, memoryview(received))[1]
        except gevent.Timeout:
            limit = f"{self._limit_ms / 1000:g} s"
            raise NotConformable(
                f"{self._place}: no answer to {APIS[api].name} in {limit}"
            ) from None
        except (OSError, EOFError):
            text = f"{self._place}: the connection was closed instead of an answer to {name}"
            raise NotConformable(text) from None
        except ProtocolError as problem:
            text = f"{self._place}: the answer to {name} is not Kafka's: {problem}"
            raise NotConformable(text) from None
        assert isinstance(decoded, expected)
        return decoded


def facts_of(upstream: Upstream, limit_ms: int = LIMIT_MS) -> ClusterFacts:
    """Ask a cluster what it is; NotConformable or UpstreamError if it cannot be asked, or does not
    answer a question within the limit."""
    with _line(upstream, limit_ms) as line:
        line.list_versions()
        features = _features(line)
        metadata = line.ask(m.MetadataResponse, m.MetadataRequest(topics=[]))
    if not metadata.brokers:
        raise NotConformable("the cluster lists no brokers in Metadata")
    brokers = {one.node_id: (one.host, one.port) for one in metadata.brokers}
    no_configs: dict[str, str] = {}
    read = partial(_configs, broker=min(brokers))
    configs = _shown(upstream, line.versions, read, no_configs)
    return ClusterFacts(
        cluster_id=metadata.cluster_id or "",
        brokers=brokers,
        controller=metadata.controller_id,
        versions=line.versions,
        features=features,
        configs=configs,
        has_authorizer=_shown(upstream, line.versions, _has_authorizer, False),
        tokens=_shown(upstream, line.versions, _tokens, None),
        voters=_shown(upstream, line.versions, _voters, frozenset()),
    )


def mechanisms_of(upstream: Upstream) -> frozenset[str]:
    """The mechanisms of SASL at the first broker's listener, none if it has no logins."""
    with _line(upstream.without_login()) as line:
        try:
            answer = line.ask(m.SaslHandshakeResponse, m.SaslHandshakeRequest(mechanism=""), 1)
        except NotConformable:
            return frozenset()
    return frozenset(answer.mechanisms)


@contextmanager
def _line(upstream: Upstream, limit_ms: int = LIMIT_MS) -> Iterator[_Preliminary]:
    end, address = upstream.connect_to_any()
    try:
        yield _Preliminary(end, f"{address[0]}:{address[1]}", limit_ms)
    finally:
        end.close()


def _shown(
    upstream: Upstream,
    versions: dict[int, tuple[int, int]],
    ask: Callable[[_Preliminary], Shown],
    unknown: Shown,
) -> Shown:
    """What a cluster answers to a question that it may leave unanswered, on a connection of its
    own; `unknown` without an answer."""
    with _line(upstream) as line:
        line.versions = versions
        try:
            return ask(line)
        except NotConformable:
            return unknown


def _features(line: _Preliminary) -> dict[str, int]:
    if line.versions.get(ApiKey.API_VERSIONS, (0, 0))[1] < FEATURES_VERSION:
        return {}
    named = m.ApiVersionsRequest(client_software_name="kcluster", client_software_version="conform")
    answer = line.ask(m.ApiVersionsResponse, named, FEATURES_VERSION)
    return {one.name: one.max_version_level for one in answer.finalized_features}


def _configs(line: _Preliminary, broker: int) -> dict[str, str]:
    if ApiKey.DESCRIBE_CONFIGS not in line.versions:
        return {}
    wanted = m.DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=4, resource_name=str(broker), configuration_keys=list(_CONFIGS_READ)
    )
    answer = line.ask(m.DescribeConfigsResponse, m.DescribeConfigsRequest(resources=[wanted]))
    return {
        one.name: one.value
        for row in answer.results
        for one in row.configs
        if one.value is not None
    }


def _voters(line: _Preliminary) -> frozenset[int]:
    if ApiKey.DESCRIBE_QUORUM not in line.versions:
        return frozenset()
    partition = m.DescribeQuorumRequest.PartitionData(partition_index=0)
    topic = m.DescribeQuorumRequest.TopicData(
        topic_name=CLUSTER_METADATA_TOPIC, partitions=[partition]
    )
    answer = line.ask(m.DescribeQuorumResponse, m.DescribeQuorumRequest(topics=[topic]))
    return frozenset(
        voter.replica_id
        for row in answer.topics
        for one in row.partitions
        for voter in one.current_voters
    )


def _has_authorizer(line: _Preliminary) -> bool:
    """Whether rights are checked; True as well if this client may not ask."""
    if ApiKey.DESCRIBE_ACLS not in line.versions:
        return False
    any_ = 1
    wanted = m.DescribeAclsRequest(
        resource_type_filter=any_, pattern_type_filter=any_, operation=any_, permission_type=any_
    )
    answer = line.ask(m.DescribeAclsResponse, wanted)
    return answer.error_code in (ErrorCode.NONE, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _tokens(line: _Preliminary) -> int | None:
    if ApiKey.DESCRIBE_DELEGATION_TOKEN not in line.versions:
        return None
    wanted = m.DescribeDelegationTokenRequest(owners=[])
    return line.ask(m.DescribeDelegationTokenResponse, wanted).error_code
