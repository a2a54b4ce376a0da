"""Any request that decodes, whatever its values, is answered or refused; no broker crashes.

Messages are generated from the schema table, with values near meaningful ones.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from kcluster.broker.registry import SERVED_APIS
from kcluster.protocol.apis import APIS, ApiKey, codec
from kcluster.protocol.codec.schema import FieldSchema
from kcluster.protocol.records.records import Record, build_batch
from tests.protocol.generated import Generator
from tests.rig.cluster import TOPIC, Answer, Simulated

SEEDS = range(int(os.environ.get("KCLUSTER_ANY_REQUESTS", "12")))
REQUESTS = 150
WORDS = (
    TOPIC,
    "nope",
    "g",
    "range",
    "__consumer_offsets",
    "",
    "retention.ms",
    "0",
    "-1",
    "1",
    "a/b",
)
NUMBERS = (0, 0, 1, 1, 2, 3, 5, 50, -1, -2, -3, 100, 6_000, 2**31 - 1, -(2**31))


class Plausible(Generator):
    """Numbers, names, ids and records that a handler may know."""

    def __init__(self, seed: str, topic_id: bytes) -> None:
        super().__init__(seed, wild=True)
        self.topic_id = topic_id

    def item(self, field: FieldSchema, top: Any, version: int, depth: int) -> Any:
        rng = self.rng
        match field.type if field.struct is None else None:
            case "string":
                return rng.choice(WORDS)
            case "uuid":
                return rng.choice((self.topic_id, bytes(16), b"n" * 16))
            case "records":
                return self.records()
            case "int8":
                return rng.choice((0, 1, 2, 3, -1, 9, 127))
            case "int16":
                return rng.choice((0, 1, 2, 3, -1, 400, -400))
            case "int32" | "int64":
                return rng.choice(NUMBERS)
        return super().item(field, top, version, depth)

    def records(self) -> Any:
        rng = self.rng
        count = rng.randint(1, 3)
        batch = build_batch(
            [Record(i, rng.choice((0, 1_000)), b"k", b"v", ()) for i in range(count)],
            producer_id=rng.choice((-1, 7)),
            producer_epoch=rng.choice((0, 1)),
            base_sequence=rng.choice((-1, 0, 1)),
            compression=rng.choice(("none", "gzip", "zstd")),
        )
        if rng.random() < 0.3:
            batch[rng.randrange(len(batch))] ^= 1 << rng.randrange(8)
        if rng.random() < 0.1:
            del batch[rng.randrange(len(batch)) :]
        return batch


@pytest.mark.parametrize("seed", SEEDS)
def test_any_request__is_answered_and_crashes_no_broker(seed: int) -> None:
    t = Simulated(seed=seed, min_insync_replicas=2)
    (topic_id, _), *_ = t.plan.disks[1].logs
    made_up = Plausible(f"any request/{seed}", topic_id)
    requests: list[tuple[int, int, Answer]] = []
    for _ in range(REQUESTS):
        api_key = made_up.rng.choice(sorted(SERVED_APIS))
        served = SERVED_APIS[api_key]
        version = made_up.rng.randint(served.min_version, served.max_version)
        coded = codec(api_key, version)
        body = made_up.message(f"{APIS[api_key].name}Request", version)
        frame = memoryview(bytearray(b"".join(coded.encode_request(body))))
        answer = t.ask(
            made_up.rng.randint(1, 3), ApiKey(api_key), version, coded.decode_request(frame, 0)
        )
        requests.append((api_key, version, answer))
        t.run_for(made_up.rng.choice((0, 0, 1, 600)))
    for api_key, version, answer in requests:
        if answer.body is not None:
            coded = codec(api_key, version)
            coded.decode_response(b"".join(coded.encode_response(answer.body)), 0)
    assert [broker.state for broker in t.status().brokers] == ["up", "up", "up"]
