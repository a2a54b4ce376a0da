"""The record of a real Kafka: what its metadata log, its clients' requests and its logs show.

Owns: the record of the mirrors, and of what passes the proxy; the choice of what is read from the
logs before a verdict.  Never: judges; makes up an append that neither an answer nor a log shows.
Kafka: no counterpart.

An append is known from the answer to its Produce.  One whose answer a client never got is found in
the log of the leader, and its request by its checksum.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from kcluster.contract import Request
from kcluster.evidence.attempts import arrival, crcs_in
from kcluster.evidence.recorder import Answer
from kcluster.evidence.sampling import SamplingRecorder, id_of
from kcluster.invariants.observed import Append, ObservedPartition, PartitionKey
from kcluster.mirror.connection import NoAnswer
from kcluster.mirror.driver import KafkaDriver
from kcluster.mirror.logs import read_log
from kcluster.partition.disk import Disk
from kcluster.partition.log.log import Log
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.names import has_internal_prefix
from kcluster.protocol.records.batches import (
    CRC_AT,
    CRC_START,
    HEADER_BYTES,
    NO_PRODUCER_ID,
    Batch,
    InvalidRecords,
    parse_batches,
)

FAST_PATIENCE_MS: Final = 500
"""The time after which a missing answer counts as an outage under profile `fast`, whose times are a
tenth of Kafka's here."""
MAX_UNANSWERED: Final = 10_000
"""The number of Produce requests without an answer that are kept, to find them in the logs."""
_PRODUCE: Final = int(ApiKey.PRODUCE)
BatchKey = tuple[PartitionKey, bytes]
"""The partition and the checksum of a batch."""


class MirrorRecorder(SamplingRecorder):
    """Records the metadata of a real cluster, its events, its clients' requests, and its logs."""

    def __init__(self, driver: KafkaDriver, *, has_all_ledgers: bool = False) -> None:
        """`has_all_ledgers`: whether all clients keep ledgers, so that logs can be judged although
        nobody sees their requests."""
        self._driver = driver
        self._reads_logs = has_all_ledgers or driver.has_proxy
        self._in_doubt: deque[Request] = deque(maxlen=MAX_UNANSWERED)
        self._appended: dict[PartitionKey, dict[tuple[int, int], Append]] = {}
        """The recorded appends of each partition, by leader epoch and base offset."""
        self._is_held = False
        """Whether answers wait until a verdict is made: its logs do not have their records."""
        super().__init__(driver.dispatcher, driver.plan)
        self.sees_requests = driver.has_proxy
        self.ground = f"Apache Kafka {driver.real.installation.version}"
        if driver.plan.topology.profile == "fast":
            self.patience_ms = FAST_PATIENCE_MS
        self.sees_appends = False
        self.sees_disks = False
        driver.on_metadata = self._observe

    def _begin(self) -> None:
        if self._driver.is_running:
            super()._begin()

    def _observe(self) -> None:
        self._read_image(self._dispatcher.now_ms)

    def _read_image(self, now_ms: int) -> None:
        """Record the partitions as the controller sees them now."""
        image = self._driver.state.image
        if image.offset == self._metadata_offset:
            return
        self._metadata_offset = image.offset
        for topic in image.topics.values():
            self._exchanges.topics[topic.topic_id] = topic.name
            for partition in topic.partitions:
                self.invariants.observe_metadata(now_ms, topic.name, partition, image.brokers)
                key = (topic.topic_id, partition.partition)
                observed = self.invariants.partition(topic.name, key)
                self._by_name[topic.name, partition.partition] = observed

    def _catch_up(self) -> None:
        if not self._is_held:
            super()._catch_up()

    # ------------------------------------------------------------------------------ appends

    def _on_unanswered(self, node_id: int, request: Request, now_ms: int) -> None:
        if request.api_key == _PRODUCE:
            self._in_doubt.append(request)
        super()._on_unanswered(node_id, request, now_ms)

    def _take(self, answer: Answer) -> None:
        at_ms, broker, reply = answer
        if reply.request.api_key == _PRODUCE:
            if reply.body is None:
                self._in_doubt.append(reply.request)
            else:
                self._add_appends(at_ms, broker, reply.request, reply.body)
        super()._take(answer)

    def _add_appends(
        self, at_ms: int, broker: int, request: Request, body: m.ProduceResponse
    ) -> None:
        """Record the appends that an answer acks."""
        records = {
            (topic.topic_id, topic.name, data.index): data.records
            for topic in request.body.topic_data
            for data in topic.partition_data
        }
        for topic in body.responses:
            for data in topic.partition_responses:
                bytes_ = records.get((topic.topic_id, topic.name, data.index))
                observed = self._partition(topic.topic_id, topic.name, data.index)
                if data.error_code or data.base_offset < 0 or not bytes_ or observed is None:
                    continue
                try:
                    batches = parse_batches(bytes_)
                except InvalidRecords:
                    continue  # a rule has changed the request on its way
                epoch = _epoch_led_by(observed, broker)
                for batch in batches:
                    count = batch.last_offset - batch.base_offset
                    batch.base_offset, batch.leader_epoch = data.base_offset, epoch
                    batch.last_offset = data.base_offset + count
                    self._add(observed, at_ms, broker, batch)

    def _partition(self, topic_id: bytes, topic: str, number: int) -> ObservedPartition | None:
        if any(topic_id):
            return self.partitions.get((topic_id, number))
        return self._by_name.get((topic, number))

    def _add(
        self, observed: ObservedPartition, at_ms: int, broker: int, batch: Batch
    ) -> Append | None:
        """Record an append; None if it is recorded already."""
        known = self._appended.setdefault(observed.key, {})
        place = (batch.leader_epoch, batch.base_offset)
        if place in known or batch.base_offset < observed.known_from:
            return None
        registration = observed.registration
        isr = () if registration is None else registration.isr
        first, last = batch.base_offset, batch.last_offset
        append = known[place] = Append(
            at_ms, broker, batch.leader_epoch, first, last, batch, None, isr, at_ms
        )
        observed.appends.append(append)
        self._kept_records += batch.record_count
        self._kept_bytes += batch.size_bytes
        self.traffic.appended(broker, observed.topic, batch)
        self._unclaimed[id_of(observed, append)] = append
        return append

    def _count_again(self) -> None:
        super()._count_again()
        self._appended = {
            key: {(one.epoch, one.base_offset): one for one in observed.appends}
            for key, observed in self.partitions.items()
        }

    # --------------------------------------------------------------------------------- logs

    def read_logs(self) -> None:
        """Read the logs of all replicas that are in sync, as far as Kafka gives them; called in a
        greenlet of the driver, before the run is judged.  Until that greenlet waits again, later
        answers are not taken into the record: the logs lack their records."""
        if self._is_held or not self._reads_logs:
            return
        self._catch_up()
        self._is_held = True
        try:
            disks = self._read_disks()
        except BaseException:
            self._release()
            raise
        self.plan = replace(self._driver.plan, disks=disks)
        self._compare(disks)
        self._driver.soon(self._release)

    def _release(self) -> None:
        self._is_held = False
        if not self._is_due:
            self._look_later(self._dispatcher.now_ms)

    def _read_disks(self) -> dict[int, Disk]:
        driver, image = self._driver, self._driver.state.image
        disks = {broker: Disk() for broker in driver.plan.disks}
        nodes = {broker: driver.requests(broker) for broker in driver.real.broker_ids}
        wanted = [
            (topic, partition.partition, broker)
            for topic in image.topics.values()
            for partition in topic.partitions
            for broker in partition.isr
        ]
        try:
            for topic, number, broker in wanted:
                try:
                    log = read_log(nodes[broker], topic.topic_id, topic.name, number)
                except NoAnswer:
                    continue
                if log is not None:
                    disks[broker].logs[topic.topic_id, number] = log
        finally:
            for node in nodes.values():
                node.close()
        return disks

    def _compare(self, disks: dict[int, Disk]) -> None:
        """Record the appends that only a leader's log shows."""
        requests = self._requests_by_crc() if self.sees_requests else {}
        for key, observed in self.partitions.items():
            leader = -1 if observed.registration is None else observed.registration.leader
            log = disks[leader].logs.get(key) if leader in disks else None
            if log is None or observed.deleted_ms >= 0 or has_internal_prefix(observed.topic):
                continue
            self._compare_log(observed, leader, log, requests)

    def _compare_log(
        self,
        observed: ObservedPartition,
        leader: int,
        log: Log,
        requests: Mapping[BatchKey, Request],
    ) -> None:
        """Record the appends of one partition, each with the first request that carried it."""
        known = self._appended.setdefault(observed.key, {})
        for batch in log.batches_from(log.log_start_offset):
            append = known.get((batch.leader_epoch, batch.base_offset))
            if append is not None:
                append.batch = batch  # names of records go by the batches of the final logs
            elif not batch.is_control and self.sees_requests:
                added = self._add(observed, batch.max_timestamp, leader, batch)
                if added is not None:
                    added.request = requests.get((observed.key, _crc_of(batch)))
        name_copies(observed.appends)
        for append in known.values():
            first = requests.get((observed.key, _crc_of(append.batch)))
            was = append.request
            if first is not None and was is not None and first.client_id == was.client_id:
                append.request = min(first, was, key=arrival)

    def _requests_by_crc(self) -> dict[BatchKey, Request]:
        """The first Produce request that carried each batch.  A batch may have been appended for a
        request whose client gave up, and acked as a duplicate when it came again."""
        names = {key[0]: observed.topic for key, observed in self.partitions.items()}
        of_name = {name: one.key for name, one in self._by_name.items()}
        answered = (
            reply.request for _, _, reply in self.answers if reply.request.api_key == _PRODUCE
        )
        found: dict[BatchKey, Request] = {}
        for request in sorted((*answered, *self._in_doubt), key=arrival):
            for partition, crc in crcs_in(request, names):
                if partition in of_name:
                    found.setdefault((of_name[partition], crc), request)
        return found


def _epoch_led_by(observed: ObservedPartition, broker: int) -> int:
    """The newest leader epoch in which a broker has led a partition, as far as it is known."""
    return next(
        (one.leader_epoch for _, one in reversed(observed.registrations) if one.leader == broker),
        -1,
    )


def name_copies(appends: Sequence[Append]) -> None:
    """Give each append without a request that has the records of another one the other's request: a
    rule has sent them a second time, which no client did."""
    unnamed = [
        one for one in appends if one.request is None and one.batch.producer_id == NO_PRODUCER_ID
    ]
    if unnamed:
        named = {_records_of(one.batch): one.request for one in appends if one.request is not None}
        for append in unnamed:
            append.request = named.get(_records_of(append.batch))


def _records_of(batch: Batch) -> bytes:
    """The bytes of a batch's records, which a copy has, too, under another header."""
    return bytes(memoryview(batch.buffer)[HEADER_BYTES:])


def _crc_of(batch: Batch) -> bytes:
    return bytes(memoryview(batch.buffer)[CRC_AT:CRC_START])
