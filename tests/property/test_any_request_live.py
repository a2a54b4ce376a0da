"""The same over TCP, on the real clock: any request that decodes is answered, parked, or closes its
connection; every broker keeps serving, and no step raises (closing the cluster would report it)."""

from __future__ import annotations

import select
import socket

import pytest

from kcluster.broker.registry import SERVED_APIS
from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.framing import encode_request_frame
from tests.property.test_any_request import Plausible
from tests.rig.cluster import TOPIC

REQUESTS = 250
SEEDS = range(3)
ANSWERED_WITHIN_S = 5.0


def connected(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=ANSWERED_WITHIN_S)


@pytest.mark.parametrize("seed", SEEDS)
def test_any_request__over_tcp_leaves_every_broker_serving(seed: int) -> None:
    topics = {TOPIC: {"partitions": 2, "replication_factor": 3}}
    with Cluster(Topology.of(brokers=3, topics=topics, profile="fast")) as cluster:
        addresses = cluster.bootstrap.split(",")
        (topic_id, _), *_ = cluster.plan.disks[1].logs
        made_up = Plausible(f"any request, live/{seed}", topic_id)
        lanes = []
        for number in range(REQUESTS):
            api_key = made_up.rng.choice(sorted(SERVED_APIS))
            served = SERVED_APIS[api_key]
            version = made_up.rng.randint(served.min_version, served.max_version)
            body = made_up.message(f"{APIS[api_key].name}Request", version)
            lane = connected(made_up.rng.choice(addresses))
            lane.sendall(b"".join(encode_request_frame(api_key, version, number, "made up", body)))
            lanes.append(lane)
        ready, _, _ = select.select(lanes, [], [], ANSWERED_WITHIN_S)
        assert ready
        for address in addresses:
            with connected(address) as lane:
                request = m.ApiVersionsRequest()
                lane.sendall(
                    b"".join(encode_request_frame(ApiKey.API_VERSIONS, 0, 1, "sane", request))
                )
                assert lane.recv(8)[4:] == b"\0\0\0\1"
        for lane in lanes:
            lane.close()
