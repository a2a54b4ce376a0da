"""Metadata, DescribeTopicPartitions, DescribeCluster, ApiVersions: the view of a cluster.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from struct import pack

from kcluster.conform.case import Ask, Case
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

API, PAGES = ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS
CLUSTER, VERSIONS = ApiKey.DESCRIBE_CLUSTER, ApiKey.API_VERSIONS


def named(*names: object, **more: object) -> JsonObject:
    return {
        "topics": [{"name": name} for name in names],
        "allow_auto_topic_creation": False,
        **more,
    }


def by_id(*ids: object, **more: object) -> JsonObject:
    return {
        "topics": [{"topic_id": id_, "name": None} for id_ in ids],
        "allow_auto_topic_creation": False,
        **more,
    }


def pages(*names: str, limit: int = 2000, cursor: object = None) -> JsonObject:
    topics = [{"name": name} for name in names]
    return {"topics": topics, "response_partition_limit": limit, "cursor": cursor}


def at(topic: str, partition: int) -> JsonObject:
    return {"topic_name": topic, "partition_index": partition}


def software(name: str, version: str) -> JsonObject:
    return {"client_software_name": name, "client_software_version": version}


ASK_AGAIN = Ask(
    API,
    {"topics": [{"name": "{new}"}], "allow_auto_topic_creation": True},
    may_fail=True,
    retry=("UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE"),
)
OPERATIONS = {
    "include_topic_authorized_operations": True, "include_cluster_authorized_operations": True,
}  # fmt: skip
PLACES: dict[str, JsonObject] = {
    "this broker": {"cluster_id": "{cluster_id}", "node_id": 2},
    "another broker": {"cluster_id": "{cluster_id}", "node_id": 1},
    "another cluster": {"cluster_id": "other", "node_id": 2},
    "another broker of another cluster": {"cluster_id": "other", "node_id": 1},
    "a cluster without a name": {"cluster_id": "", "node_id": 2},
    "a long name": {"cluster_id": "c" * 300, "node_id": 2},
    "a cluster alone": {"cluster_id": "{cluster_id}"},
    "another cluster alone": {"cluster_id": "other"},
    "a broker alone": {"node_id": 2},
    "another broker alone": {"node_id": 1},
    "broker -1": {"cluster_id": "{cluster_id}", "node_id": -1},
    "broker -2": {"cluster_id": "{cluster_id}", "node_id": -2},
    "broker -2 alone": {"node_id": -2},
}  # fmt: skip
"""What a client expects at the address (KIP-1242), which is broker 2."""
PLACED = dict.fromkeys(("leader_id", "replica_nodes", "isr_nodes"), "drawn")

CASES = (
    Case("a topic", API, named("{topic}")),
    Case("asked of another broker", API, named("{topic}"), to=2),
    Case("no topics", API, {"topics": [], "allow_auto_topic_creation": False}, "1+"),
    Case("an unknown topic", API, named("{missing}"), "4+"),
    Case("a topic and an unknown one", API, named("{missing}", "{topic}"), "4+"),
    Case("a topic twice", API, named("{topic}", "{topic}"), "4+"),
    Case("an unknown topic twice", API, named("{missing}", "{missing}"), "4+"),
    Case("invalid name", API, named("a b"), "4+"),
    Case("empty name", API, named(""), "4+"),
    Case("name ..", API, named(".."), "4+"),
    Case("name of 250 characters", API, named("x" * 250), "4+"),
    Case("invalid name, creating", API, named("a b", allow_auto_topic_creation=True)),
    Case("creating", API, named("{new}", allow_auto_topic_creation=True), after=(ASK_AGAIN,),
         mask=PLACED),
    Case("created", API, named("{new}"), "4+", before=(ASK_AGAIN,), mask=PLACED),
    Case("internal topic", API, named("__consumer_offsets"), "4+",
         mask={"partitions": "leaders differ"}),
    Case("the metadata log", API, named("__cluster_metadata"), "4+"),
    Case("by id", API, by_id("{topic_id}"), "12+"),
    Case("by an unknown id", API, by_id("{missing_id}"), "12+"),
    Case("by id twice", API, by_id("{topic_id}", "{topic_id}"), "12+"),
    Case("by id and unknown id", API, by_id("{topic_id}", "{missing_id}"), "12+"),
    Case("by id zero", API, by_id(bytes(16)), "12+"),
    Case("by id, too early", API, by_id("{topic_id}"), "10-11"),
    Case("id and name", API, {"topics": [{"topic_id": "{topic_id}", "name": "{missing}"}],
         "allow_auto_topic_creation": False}, "12+"),
    Case("an id and another's name", API, {"topics": [{"topic_id": "{topic_id}", "name": None},
         {"name": "{topic}"}], "allow_auto_topic_creation": False}, "12+"),
    Case("authorized operations", API, named("{topic}", "{missing}", **OPERATIONS), "8+"),

    Case("pages: a topic", PAGES, pages("{topic}")),
    Case("pages: an unknown topic", PAGES, pages("{missing}")),
    Case("pages: both, twice", PAGES, pages("{topic}", "{missing}", "{topic}", "{missing}")),
    Case("pages: invalid name", PAGES, pages("a b")),
    Case("pages: empty name", PAGES, pages("")),
    Case("pages: empty name and others", PAGES, pages("{topic}", "", "{missing}", "{topic}")),
    Case("pages: limit 1", PAGES, pages("{topic}", limit=1)),
    Case("pages: limit 3", PAGES, pages("{topic}", limit=3)),
    Case("pages: limit 0", PAGES, pages("{topic}", limit=0)),
    Case("pages: limit -1", PAGES, pages("{topic}", limit=-1)),
    Case("pages: from a cursor", PAGES, pages("{topic}", cursor=at("{topic}", 1))),
    Case("pages: cursor past the end", PAGES, pages("{topic}", cursor=at("{topic}", 9))),
    Case("pages: cursor at partition -1", PAGES, pages("{topic}", cursor=at("{topic}", -1))),
    Case("pages: cursor on another topic", PAGES, pages("{topic}", cursor=at("{missing}", 0))),
    Case("pages: full, then another", PAGES, pages("{topic}", "{missing}", limit=3)),

    Case("cluster", CLUSTER),
    Case("cluster with operations", CLUSTER, {"include_cluster_authorized_operations": True}),
    Case("cluster with fenced brokers", CLUSTER, {"include_fenced_brokers": True}),
    Case("cluster: controllers", CLUSTER, {"endpoint_type": 2}, "1+"),
    Case("cluster: endpoint type 0", CLUSTER, {"endpoint_type": 0}, "1+"),
    Case("cluster: endpoint type 3", CLUSTER, {"endpoint_type": 3}, "1+"),

    Case("versions", VERSIONS, software("compare", "1.0")),
    *(Case(f"versions for {name!r} {version!r}", VERSIONS, software(name, version), "3+")
      for name, version in (("", "1"), ("a", ""), ("a b", "1"), ("-a", "1"), ("a.", "1"),
                            ("a_b", "1"), ("a", "1+2"), ("a.b-c", "1.0-x"), ("Ä", "1"))),
    *(Case(f"versions, for {name}", VERSIONS, {**software("compare", "1"), **place}, "3+", to=2)
      for name, place in PLACES.items()),
    Case("versions, for another cluster, of bad software", VERSIONS,
         {**software("a b", "1"), **PLACES["another cluster"]}, "3+"),
    Case("versions, newer than there are", VERSIONS, software("compare", "1"), "newest",
         bend=lambda frame: frame[:2] + pack(">h", 6) + frame[4:]),
    Case("versions, version 99", VERSIONS, software("compare", "1"), "newest",
         bend=lambda frame: frame[:2] + pack(">h", 99) + frame[4:]),
    Case("versions, version -1", VERSIONS, {}, "0",
         bend=lambda frame: frame[:2] + pack(">h", -1) + frame[4:]),
    Case("versions, no client id", VERSIONS, software("compare", "1"), client_id=None),
)  # fmt: skip
