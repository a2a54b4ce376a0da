"""Before and after a case: the shared stage, fresh topics, the state that a case leaves.

Owns: setting up, reading the state, cleaning up.  Never: knows a case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from compare.case import Ask
from compare.filling import Values
from compare.systems import System
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


class Asker(Protocol):
    """What these need of a Runner."""

    stage: dict[str, Any]
    system: System

    def message(self, api: ApiKey, body: Mapping[str, Any], to: int, values: Values) -> Any:
        """Send a request in its newest version; the decoded response."""

    def ask(self, step: Ask, values: Values, masks: Mapping[str, str] = {}) -> Any:
        """Send a step's request, with its retries; the response as plain data."""


def prepare_stage(runner: Asker) -> None:
    """Create {topic} with its records, read {cluster_id}, wait until groups have coordinators and
    brokers have producer ids."""
    values = Values(runner.stage)
    _create(runner, values, "{topic}", STAGE_ASSIGNMENT)
    runner.stage["topic_id"] = _wait_for_topic(runner, values, runner.stage["topic"])
    now = runner.stage["now"]
    half = STAGE_RECORDS // 2
    for start in (0, half):
        records = [Record(at, now + start + at, b"k%d" % at, b"v%d" % at) for at in range(half)]
        data = {"index": 0, "records": bytes(build_batch(records))}
        topic = {"topic_id": runner.stage["topic_id"], "partition_data": [data]}
        body = {"acks": -1, "timeout_ms": 30_000, "topic_data": [topic]}
        runner.message(ApiKey.PRODUCE, body, 1, values)
    described = runner.message(ApiKey.DESCRIBE_CLUSTER, {}, 1, values)
    runner.stage["cluster_id"] = described.cluster_id
    coordinator_of(runner, "any")
    # The first producer id of a cluster is 0, which looks like a field that is not there.  A broker
    # asked for its first one is still fetching its block of them.
    for broker in runner.system.addresses:
        for _ in range(STABLE_TRIES):
            request = {"transactional_id": None}
            if not runner.message(ApiKey.INIT_PRODUCER_ID, request, broker, values).error_code:
                break
            runner.system.sleep_ms(50)


def coordinator_of(runner: Asker, group: str) -> int:
    """The broker id of a group's coordinator, once there is one that serves."""
    values = Values(runner.stage)
    for _ in range(STABLE_TRIES * 10):
        body = {"key_type": 0, "coordinator_keys": [group]}
        (found,) = runner.message(ApiKey.FIND_COORDINATOR, body, 1, values).coordinators
        if not found.error_code:
            described = runner.message(
                ApiKey.DESCRIBE_GROUPS, {"groups": [group]}, found.node_id, values
            )
            if described.groups[0].error_code in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
                return int(found.node_id)
        runner.system.sleep_ms(50)
    raise AssertionError(f"group {group} has no coordinator: {found}")


def transaction_coordinator_of(runner: Asker, transactional_id: str) -> int:
    """The broker id of a transaction's coordinator, once there is one that serves."""
    values = Values(runner.stage)
    for _ in range(STABLE_TRIES * 10):
        body = {"key_type": 1, "coordinator_keys": [transactional_id]}
        (found,) = runner.message(ApiKey.FIND_COORDINATOR, body, 1, values).coordinators
        if not found.error_code:
            asked = {"transactional_ids": [transactional_id]}
            described = runner.message(ApiKey.DESCRIBE_TRANSACTIONS, asked, found.node_id, values)
            error = described.transaction_states[0].error_code
            if error in (ErrorCode.NONE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
                return int(found.node_id)
        runner.system.sleep_ms(50)
    raise AssertionError(f"transactional id {transactional_id} has no coordinator: {found}")


def make_fresh(runner: Asker, values: Values) -> None:
    """Create {fresh} if the run uses it."""
    if "fresh" in values.known:
        _create(runner, values, "{fresh}", FRESH_ASSIGNMENT)
        values.known["fresh_id"] = _wait_for_topic(runner, values, values.known["fresh"])


def _create(
    runner: Asker, values: Values, name: str, assignment: tuple[tuple[int, ...], ...]
) -> None:
    replicas = [
        {"partition_index": index, "broker_ids": list(ids)} for index, ids in enumerate(assignment)
    ]
    topic = {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": replicas}
    answer = runner.message(
        ApiKey.CREATE_TOPICS, {"topics": [topic], "timeout_ms": 30_000}, 1, values
    )
    assert not answer.topics[0].error_code, answer


def _wait_for_topic(runner: Asker, values: Values, name: str) -> Any:
    """A topic's id, once all brokers know it and each leader serves its partition."""
    body = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
    for broker in runner.system.addresses:
        for _ in range(STABLE_TRIES * 10):
            (topic,) = runner.message(ApiKey.METADATA, body, broker, values).topics
            led_here = [p.partition_index for p in topic.partitions if p.leader_id == broker]
            if not topic.error_code and all(
                _serves(runner, values, name, index, broker) for index in led_here
            ):
                break
            runner.system.sleep_ms(5)
    return topic.topic_id


def _serves(runner: Asker, values: Values, name: str, index: int, broker: int) -> bool:
    """Whether a leader serves its partition, which begins shortly after it is in the metadata."""
    requested = [{"partition_index": index, "timestamp": -1, "current_leader_epoch": -1}]
    body = {"replica_id": -1, "topics": [{"name": name, "partitions": requested}]}
    answer = runner.message(ApiKey.LIST_OFFSETS, body, broker, values)
    return not answer.topics[0].partitions[0].error_code


# ---------------------------------------------------------------------------------- afterwards


def state_after(runner: Asker, values: Values, masks: Mapping[str, str]) -> dict[str, Any]:
    """The state of everything that a case could have changed, once it is stable."""
    values.known["placed_at_random"] = PLACEMENT in masks
    if not set(values.known) & {*_NAMES_MADE, "group", "txn"}:
        return {}
    runner.system.sleep_ms(runner.system.settle_ms)
    before = _state(runner, values)
    for _ in range(STABLE_TRIES):
        runner.system.sleep_ms(runner.system.settle_ms // 2)
        now = _state(runner, values)
        if now == before:
            break
        before = now
    return now


def _state(runner: Asker, values: Values) -> dict[str, Any]:
    state: dict[str, Any] = {}
    for name in _NAMES_MADE:
        if name in values.known:
            state[name] = _topic_state(runner, values, values.known[name])
    if "group" in values.known:
        state["group"] = _group_state(runner, values)
    if "txn" in values.known:
        body = {"transactional_ids": ["{txn}"]}
        to = values.known["transactions"]
        described = Ask(
            ApiKey.DESCRIBE_TRANSACTIONS, body, to=to, on="stage", retry=("PrepareC", "PrepareA")
        )
        transaction = state["transaction"] = runner.ask(described, values)["transaction_states"][0]
        for topic in transaction.get("topics", ()):
            if topic["topic"] == GROUP_METADATA_TOPIC:
                topic["partitions"] = "by the hash of the group"
    return state


def _topic_state(runner: Asker, values: Values, name: str) -> Any:
    body = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
    (topic,) = runner.message(ApiKey.METADATA, body, 1, values).topics
    if topic.error_code:
        return error_of(topic.error_code).name
    is_random = name != values.known.get("fresh") or values.known["placed_at_random"]
    partitions = [
        (_shape(one) if is_random else _exactly(one)) + _ends(runner, values, name, one)
        for one in sorted(topic.partitions, key=lambda one: one.partition_index)
    ]
    requested = {"resource_type": 2, "resource_name": name}
    (described,) = runner.message(
        ApiKey.DESCRIBE_CONFIGS, {"resources": [requested]}, 1, values
    ).results
    configs = {
        one.name: one.value for one in described.configs if one.config_source == _TOPIC_SOURCE
    }
    return {"partitions": partitions, **({"configs": configs} if configs else {})}


def _exactly(partition: Any) -> str:
    return (
        f"leader {partition.leader_id} epoch {partition.leader_epoch}"
        f" replicas {partition.replica_nodes} isr {sorted(partition.isr_nodes)}"
    )


def _shape(partition: Any) -> str:
    """A partition whose replicas the cluster placed at random."""
    return f"{len(partition.replica_nodes)} replicas, {len(partition.isr_nodes)} in sync"


def _ends(runner: Asker, values: Values, name: str, partition: Any) -> str:
    if partition.leader_id < 0:
        return ""
    found = []
    for timestamp in (-2, -1):
        requested = {"partition_index": partition.partition_index, "timestamp": timestamp}
        # As a debugging replica: the log end offset, as the high watermark may lag.
        body = {"replica_id": -2, "topics": [{"name": name, "partitions": [requested]}]}
        answer = runner.message(ApiKey.LIST_OFFSETS, body, partition.leader_id, values)
        one = answer.topics[0].partitions[0]
        found.append(error_of(one.error_code).name if one.error_code else str(one.offset))
    return f" offsets {found[0]} to {found[1]}"


def _group_state(runner: Asker, values: Values) -> Any:
    to = values.known["coordinator"]
    described = Ask(ApiKey.DESCRIBE_GROUPS, {"groups": ["{group}"]}, to=to, on="stage")
    requested = {"group_id": "{group}", "topics": None}
    offsets = Ask(ApiKey.OFFSET_FETCH, {"groups": [requested]}, to=to, on="stage", version=9)
    found = runner.ask(offsets, values)["groups"][0].get("topics", [])
    return {
        "described": runner.ask(described, values)["groups"][0],
        "offsets": sorted(found, key=lambda topic: str(topic["name"])),  # all: a hash table's order
    }


def clean_up(runner: Asker, values: Values) -> None:
    """Delete the topics of this run."""
    names = [values.known[name] for name in _NAMES_MADE if name in values.known]
    if names:
        body = {"topics": [{"name": name} for name in names], "timeout_ms": 30_000}
        runner.message(ApiKey.DELETE_TOPICS, body, 1, values)
