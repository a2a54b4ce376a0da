"""Before and after a case: the shared stage, fresh topics, the state that a case leaves.

Owns: setting up, reading the state, cleaning up.  Never: knows a case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol, TypeVar

from kcluster.conform.case import Ask
from kcluster.conform.filling import CaseError, Values
from kcluster.conform.systems import System
from kcluster.json_types import JsonObject
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.names import GROUP_METADATA_TOPIC
from kcluster.protocol.records.records import Record, build_batch

STAGE_ASSIGNMENT: Final = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
FRESH_ASSIGNMENT: Final = ((1, 2, 3), (2, 3, 1))
STAGE_RECORDS: Final = 10
STABLE_TRIES: Final = 40
PLACEMENT: Final = "placement"
"""As a masked field: the brokers of new replicas are drawn at random."""
_TOPIC_SOURCE: Final = 1
_NAMES_MADE: Final = ("fresh", "new", "new2")

Answer = TypeVar("Answer", bound=m.Message)
Row = TypeVar("Row")
_Partition = m.MetadataResponse.MetadataResponsePartition


class Asker(Protocol):
    """What these need of a CaseRunner."""

    stage: JsonObject
    system: System
    hidden: frozenset[str]
    patience: int

    def values(self) -> Values:
        """The placeholders of the stage."""

    def message(
        self, expected: type[Answer], body: Mapping[str, object], to: int, values: Values
    ) -> Answer:
        """Send a request in its newest version; the decoded response.  CaseError if there is
        none."""

    def ask(self, step: Ask, values: Values, masks: Mapping[str, str] = {}) -> object:
        """Send a step's request, with its retries; the response as plain data."""

    def serves(self, api: ApiKey) -> bool:
        """Whether the system's brokers list an API."""


def prepare_stage(runner: Asker) -> None:
    """Create {topic} with its records, read {cluster_id}, wait until groups have coordinators and
    brokers have producer ids."""
    values = runner.values()
    _create(runner, values, "{topic}", STAGE_ASSIGNMENT)
    runner.stage["topic_id"] = _wait_for_topic(runner, values, runner.stage["topic"])
    _require_placed(runner, values)
    now = runner.stage["now"]
    half = STAGE_RECORDS // 2
    for start in (0, half):
        records = [Record(at, now + start + at, b"k%d" % at, b"v%d" % at) for at in range(half)]
        data = {"index": 0, "records": bytes(build_batch(records))}
        named = {"name": "{topic}", "topic_id": runner.stage["topic_id"], "partition_data": [data]}
        body = {"acks": -1, "timeout_ms": 30_000, "topic_data": [named]}
        answer = runner.message(m.ProduceResponse, body, 1, values)
        partition = _only(_only(answer.responses, "Produce").partition_responses, "Produce")
        _refuse(partition.error_code, "Produce")
    described = runner.message(m.MetadataResponse, {"topics": []}, 1, values)
    runner.stage["cluster_id"] = described.cluster_id
    coordinator_of(runner, "any")
    # The first producer id of a cluster is 0, which looks like a field that is not there.  A broker
    # asked for its first one is still fetching its block of them.
    if not runner.serves(ApiKey.INIT_PRODUCER_ID):
        return
    for broker in runner.system.addresses:
        for _ in range(STABLE_TRIES):
            request = {"transactional_id": None}
            if not runner.message(m.InitProducerIdResponse, request, broker, values).error_code:
                break
            runner.system.sleep_ms(50)


def _require_placed(runner: Asker, values: Values) -> None:
    """Each partition of {topic} must be led by the broker that CreateTopics assigned it to: the
    cases say which broker leads what."""
    wanted_topic = {"topics": [{"name": "{topic}"}]}
    answer = runner.message(m.MetadataResponse, wanted_topic, 1, values)
    topic = _only(answer.topics, "Metadata")
    for one in topic.partitions:
        wanted = next(id_ for id_ in STAGE_ASSIGNMENT[one.partition_index] if id_ in _there(runner))
        if values.ids.to_case(one.leader_id) != wanted:
            raise CaseError(
                "replicas are not where CreateTopics assigned them; ask a cluster of one broker"
            )


def _there(runner: Asker) -> set[int]:
    return set(runner.system.addresses)


def coordinator_of(runner: Asker, group: str) -> int:
    """The number of the broker that coordinates a group, once there is one that serves."""

    def is_served(broker: int) -> bool:
        asked = {"groups": [group]}
        described = runner.message(m.DescribeGroupsResponse, asked, broker, runner.values())
        error = _only(described.groups, "DescribeGroups").error_code
        return error in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND)

    may_describe = runner.serves(ApiKey.DESCRIBE_GROUPS)
    for _ in range(STABLE_TRIES * 10):
        found, error = _coordinator(runner, group, 0)
        if found is not None and (not may_describe or is_served(found)):
            return found
        runner.system.sleep_ms(50)
    raise CaseError(f"group {group} has no coordinator: {error_of(error).name}")


def transaction_coordinator_of(runner: Asker, transactional_id: str) -> int:
    """The number of the broker that coordinates a transaction, once there is one that serves."""

    def is_served(broker: int) -> bool:
        asked = {"transactional_ids": [transactional_id]}
        values = runner.values()
        described = runner.message(m.DescribeTransactionsResponse, asked, broker, values)
        error = _only(described.transaction_states, "DescribeTransactions").error_code
        return error in (ErrorCode.NONE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)

    may_describe = runner.serves(ApiKey.DESCRIBE_TRANSACTIONS)
    for _ in range(STABLE_TRIES * 10):
        found, error = _coordinator(runner, transactional_id, 1)
        if found is not None and (not may_describe or is_served(found)):
            return found
        runner.system.sleep_ms(50)
    reason = error_of(error).name
    raise CaseError(f"transactional id {transactional_id} has no coordinator: {reason}")


def _coordinator(runner: Asker, key: str, kind: int) -> tuple[int | None, int]:
    """(broker, error code): one of both."""
    values = runner.values()
    body = {"key_type": kind, "key": key, "coordinator_keys": [key]}
    answer = runner.message(m.FindCoordinatorResponse, body, 1, values)
    rows = answer.coordinators  # before version 4 the answer is itself the row
    error, node = (
        (rows[0].error_code, rows[0].node_id) if rows else (answer.error_code, answer.node_id)
    )
    return (None, error) if error else (values.ids.to_case(node), 0)


def make_fresh(runner: Asker, values: Values) -> None:
    """Create {fresh} if the run uses it."""
    if "fresh" in values.known:
        _create(runner, values, "{fresh}", FRESH_ASSIGNMENT)
        values.known["fresh_id"] = _wait_for_topic(runner, values, values.known["fresh"])


def _create(
    runner: Asker, values: Values, name: str, assignment: tuple[tuple[int, ...], ...]
) -> None:
    """Create a topic; brokers that the cluster does not have are left out."""
    there = runner.system.addresses
    replicas = [
        {"partition_index": index, "broker_ids": [id_ for id_ in ids if id_ in there]}
        for index, ids in enumerate(assignment)
    ]
    topic = {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": replicas}
    body = {"topics": [topic], "timeout_ms": 30_000}
    answer = runner.message(m.CreateTopicsResponse, body, 1, values)
    _refuse(_only(answer.topics, "CreateTopics").error_code, "CreateTopics")


def _only(rows: Sequence[Row], api: str) -> Row:
    """The only row of an answer about one thing."""
    if len(rows) != 1:
        raise CaseError(f"{api} got {len(rows)} rows for one")
    return rows[0]


def _refuse(error_code: int, api: str) -> None:
    if error_code:
        raise CaseError(f"{api} got {error_of(error_code).name}")


def _wait_for_topic(runner: Asker, values: Values, name: str) -> bytes:
    """A topic's id, once all brokers know it and each leader serves its partition."""
    body = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
    for broker in runner.system.addresses:
        for _ in range(STABLE_TRIES * 10):
            answer = runner.message(m.MetadataResponse, body, broker, values)
            topic = _only(answer.topics, "Metadata")
            led_here = [
                one.partition_index
                for one in topic.partitions
                if values.ids.to_case(one.leader_id) == broker
            ]
            if not topic.error_code and all(
                _serves(runner, values, name, index, broker) for index in led_here
            ):
                break
            runner.system.sleep_ms(5)
    return bytes(topic.topic_id)


def _serves(runner: Asker, values: Values, name: str, index: int, broker: int) -> bool:
    """Whether a leader serves its partition, which begins shortly after it is in the metadata."""
    requested = [{"partition_index": index, "timestamp": -1, "current_leader_epoch": -1}]
    body = {"replica_id": -1, "topics": [{"name": name, "partitions": requested}]}
    answer = runner.message(m.ListOffsetsResponse, body, broker, values)
    topic = _only(answer.topics, "ListOffsets")
    return not _only(topic.partitions, "ListOffsets").error_code


# ---------------------------------------------------------------------------------- afterwards


def state_after(runner: Asker, values: Values, masks: Mapping[str, str]) -> JsonObject:
    """The state of everything that a case could have changed, once it is stable."""
    values.known["placed_at_random"] = PLACEMENT in masks
    if not set(values.known) & {*_NAMES_MADE, "group", "txn"}:
        return {}
    runner.system.sleep_ms(runner.system.settle_ms * runner.patience)
    before = _state(runner, values)
    for _ in range(STABLE_TRIES):
        runner.system.sleep_ms(runner.system.settle_ms // 2)
        now = _state(runner, values)
        if now == before:
            break
        before = now
    return now


def _state(runner: Asker, values: Values) -> JsonObject:
    state: JsonObject = {}
    for name in _NAMES_MADE:
        if name in values.known:
            state[name] = _topic_state(runner, values, values.known[name])
    if "group" in values.known and "group" not in runner.hidden:
        state["group"] = _group_state(runner, values)
    if "txn" in values.known and "transaction" not in runner.hidden:
        body = {"transactional_ids": ["{txn}"]}
        to = values.known["transactions"]
        described = Ask(
            ApiKey.DESCRIBE_TRANSACTIONS, body, to=to, on="stage", retry=("PrepareC", "PrepareA")
        )
        transaction = state["transaction"] = _row(runner, described, values, "transaction_states")
        for topic in transaction.get("topics", ()):
            if topic["topic"] == GROUP_METADATA_TOPIC:
                topic["partitions"] = "by the hash of the group"
    return state


def _topic_state(runner: Asker, values: Values, name: str) -> object:
    body = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
    answer = runner.message(m.MetadataResponse, body, 1, values)
    topic = _only(answer.topics, "Metadata")
    if topic.error_code:
        return error_of(topic.error_code).name
    is_random = name != values.known.get("fresh") or values.known["placed_at_random"]
    partitions = [
        (_shape(one) if is_random else _exactly(one, values)) + _ends(runner, values, name, one)
        for one in sorted(topic.partitions, key=lambda one: one.partition_index)
    ]
    requested = {"resource_type": 2, "resource_name": name}
    asked = {"resources": [requested]}
    described = runner.message(m.DescribeConfigsResponse, asked, 1, values)
    row = _only(described.results, "DescribeConfigs")
    configs = {one.name: one.value for one in row.configs if one.config_source == _TOPIC_SOURCE}
    return {"partitions": partitions, **({"configs": configs} if configs else {})}


def _exactly(partition: _Partition, values: Values) -> str:
    number = values.ids.to_case
    return (
        f"leader {number(partition.leader_id)} epoch {partition.leader_epoch}"
        f" replicas {[number(one) for one in partition.replica_nodes]}"
        f" isr {sorted(number(one) for one in partition.isr_nodes)}"
    )


def _shape(partition: _Partition) -> str:
    """A partition whose replicas the cluster placed at random."""
    return f"{len(partition.replica_nodes)} replicas, {len(partition.isr_nodes)} in sync"


def _ends(runner: Asker, values: Values, name: str, partition: _Partition) -> str:
    if partition.leader_id < 0:
        return ""
    found = []
    for timestamp in (-2, -1):
        requested = {"partition_index": partition.partition_index, "timestamp": timestamp}
        # As a debugging replica: the log end offset, as the high watermark may lag.
        body = {"replica_id": -2, "topics": [{"name": name, "partitions": [requested]}]}
        leader = values.ids.to_case(partition.leader_id)
        answer = runner.message(m.ListOffsetsResponse, body, leader, values)
        topic = _only(answer.topics, "ListOffsets")
        one = _only(topic.partitions, "ListOffsets")
        found.append(error_of(one.error_code).name if one.error_code else str(one.offset))
    return f" offsets {found[0]} to {found[1]}"


def _group_state(runner: Asker, values: Values) -> JsonObject:
    to = values.known["coordinator"]
    described = Ask(ApiKey.DESCRIBE_GROUPS, {"groups": ["{group}"]}, to=to, on="stage")
    requested = {"group_id": "{group}", "topics": None}
    offsets = Ask(ApiKey.OFFSET_FETCH, {"groups": [requested]}, to=to, on="stage", version=9)
    found = _row(runner, offsets, values, "groups").get("topics", [])
    return {
        "described": _row(runner, described, values, "groups"),
        "offsets": sorted(found, key=lambda topic: str(topic["name"])),  # all: a hash table's order
    }


def _row(runner: Asker, step: Ask, values: Values, name: str) -> JsonObject:
    """The only row of a response's list."""
    answer = runner.ask(step, values)
    rows = answer.get(name) if isinstance(answer, dict) else None
    if not rows:
        raise CaseError(f"the state is not shown: {step.api.name} got {answer}")
    row: JsonObject = rows[0]
    return row


def clean_up(runner: Asker, values: Values) -> None:
    """Delete the topics of this run."""
    names = [values.known[name] for name in _NAMES_MADE if name in values.known]
    if names:
        # Before version 6 they are a list of names.
        topics = [{"name": name} for name in names]
        body = {"topics": topics, "topic_names": names, "timeout_ms": 30_000}
        runner.message(m.DeleteTopicsResponse, body, 1, values)
