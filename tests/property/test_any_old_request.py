"""The same for brokers of older releases, with versions and record formats that 4.0 removed."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.broker.versions import listed, served
from kcluster.protocol.apis import APIS, ApiKey, codec
from kcluster.protocol.records.message_sets import build_message_set
from kcluster.protocol.records.records import Record
from kcluster.protocol.releases import Release, releases
from tests.property.test_any_request import SEEDS, Plausible
from tests.rig.cluster import Answer, Simulated

REQUESTS = 150
OLD = ("0.11", "1.1", "2.3", "2.8", "3.2", "3.9", "4.0")


class PlausiblyOld(Plausible):
    """Message sets, too."""

    def records(self) -> Any:
        rng = self.rng
        if rng.random() < 0.4:
            return super().records()
        count = rng.randint(0, 3)
        made = bytearray(
            build_message_set(
                [Record(i, rng.choice((0, 1_000)), b"k", b"v") for i in range(count)],
                rng.choice((0, 1)),
                rng.choice((0, 1, 2, 3)),
                rng.random() < 0.1,
            )
        )
        if made and rng.random() < 0.4:
            made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
        if made and rng.random() < 0.1:
            del made[rng.randrange(len(made)) :]
        return made

    def request_of(self, release: Release) -> tuple[int, int]:
        """(API key, version) that a broker of `release` serves, often an old one."""
        rng = self.rng
        api_key, versions = rng.choice(
            [(key, versions) for key, _, _ in listed(release) if (versions := served(release, key))]
        )
        return api_key, rng.choice((versions[0], rng.randint(*versions)))


@pytest.mark.parametrize("seed", SEEDS)
def test_any_old_request__is_answered_and_crashes_no_broker(seed: int) -> None:
    t = Simulated(seed=seed, min_insync_replicas=2)
    (topic_id, _), *_ = t.plan.disks[1].logs
    made_up = PlausiblyOld(f"any old request/{seed}", topic_id)
    release_of = {}
    for broker_id in (1, 2, 3):
        release_of[broker_id] = releases()[made_up.rng.choice(OLD)]
        node: Any = t.dispatcher.processes[broker_id].node
        node.release = release_of[broker_id]
    requests: list[tuple[int, int, Answer]] = []
    for _ in range(REQUESTS):
        broker_id = made_up.rng.randint(1, 3)
        api_key, version = made_up.request_of(release_of[broker_id])
        coded = codec(api_key, version)
        body = made_up.message(f"{APIS[api_key].name}Request", version)
        frame = memoryview(bytearray(b"".join(coded.encode_request(body))))
        answer = t.ask(broker_id, ApiKey(api_key), version, coded.decode_request(frame, 0))
        requests.append((api_key, version, answer))
        t.run_for(made_up.rng.choice((0, 0, 1, 600)))
    for api_key, version, answer in requests:
        if answer.body is not None:
            coded = codec(api_key, version)
            coded.decode_response(b"".join(coded.encode_response(answer.body)), 0)
    assert [broker.state for broker in t.status().brokers] == ["up", "up", "up"]
