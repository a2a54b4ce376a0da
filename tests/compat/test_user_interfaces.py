"""What the tools of docs/reference/tools.md ask for is served, in the versions of their clients.

Owns: reading that table; one minimal request per API and version.  Never: runs the tools.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from markdown_it import MarkdownIt
from msgspec import Struct

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey, advertised_versions
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from kcluster.protocol.releases import releases
from tests.rig.lines import read_frame

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "tools.md"
KEYS = {api.name.replace("_", ""): api for api in ApiKey}
OURS = {api: (low, high) for api, low, high in advertised_versions()}
OURS[ApiKey.PRODUCE] = (3, OURS[ApiKey.PRODUCE][1])  # lower ones are listed for old librdkafka only
BODIES: dict[str, dict[str, Any]] = {
    "ApiVersions": {"client_software_name": "tool", "client_software_version": "1"},
    "DescribeAcls": {
        "resource_type_filter": 1,
        "pattern_type_filter": 1,
        "operation": 1,
        "permission_type": 1,
    },
    "Produce": {"acks": -1},
}
"""Where a request that says nothing is no request."""


class Tool(NamedTuple):
    """`release`: the Kafka release whose versions its client library speaks, at most."""

    name: str
    release: str
    apis: list[str]


def tools() -> Iterator[Tool]:
    tokens = MarkdownIt("commonmark").enable("table").parse(PAGE.read_text("utf-8"))
    cells = [token.content for token in tokens if token.type == "inline"]
    at = cells.index("asks for") + 1
    while at + 3 < len(cells) and (release := re.search(r"Kafka (\d\.\d)$", cells[at + 2])):
        yield Tool(cells[at], release[1], cells[at + 3].split(", "))
        at += 4


TOOLS = list(tools())


def versions(tool: Tool, api: ApiKey) -> tuple[int, int]:
    """The lowest and the highest version that the tool's client and a broker here both speak."""
    (oldest, newest), (low, high) = releases()[tool.release].listed[api], OURS[api]
    return max(oldest, low), min(newest, high)


def ask(cluster: Cluster, api: ApiKey, version: int, body: Any) -> Any:
    """The answer of the leader of orders-0."""
    address = cluster.plan.addresses[cluster.leader("orders", 0)]
    with socket.create_connection(address, timeout=10) as sock:
        sock.sendall(b"".join(encode_request_frame(api, version, 7, "tool", body)))
        return decode_response_frame(api, version, read_frame(sock))[1]


def errors_in(answer: Any) -> Iterator[ErrorCode]:
    if isinstance(answer, list | tuple):
        for item in answer:
            yield from errors_in(item)
    elif isinstance(answer, Struct) or hasattr(answer, "__slots__"):
        names = getattr(answer, "__struct_fields__", None) or answer.__slots__
        for name in names:
            value = getattr(answer, name)
            if name == "error_code":
                yield ErrorCode(value)
            else:
                yield from errors_in(value)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(Topology.of(3, profile="fast", topics={"orders": {}})) as running:
        yield running


def test_tools__the_table_has_all_seven() -> None:
    assert [tool.name for tool in TOOLS] == [
        "AKHQ",
        "Kafdrop",
        "kafbat UI",
        "Redpanda Console",
        "Burrow",
        "kafka-exporter",
        "Cruise Control",
    ]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_tools__each_api_is_served_in_the_versions_of_the_tools_client(
    cluster: Cluster, tool: Tool
) -> None:
    for name in tool.apis:
        api = KEYS[name.upper()]
        low, high = versions(tool, api)
        assert low <= high, f"{name}: no version in common"
        for version in {low, high}:
            body = m.message_class(f"{name}Request")(**BODIES.get(name, {}))
            answer = ask(cluster, api, version, body)
            assert ErrorCode.UNSUPPORTED_VERSION not in set(errors_in(answer)), (name, version)
