"""`pytest --kcluster-search`, `--kcluster-keep-going`, `--kcluster-trace`, `--kcluster-steps`."""

from __future__ import annotations

import re

import pytest

import kcluster.testing.world_handle  # noqa: F401  # a world outlives the sessions in this process

pytest_plugins = ["pytester"]

COMMITS_FIRST = """
import time
import pytest
from kafka import KafkaConsumer, KafkaProducer

def billing(servers, done, commits_first):
    consumer = KafkaConsumer("orders", bootstrap_servers=servers, group_id="billing",
                             auto_offset_reset="earliest", enable_auto_commit=False,
                             session_timeout_ms=6000, heartbeat_interval_ms=2000)
    while True:
        for records in consumer.poll(timeout_ms=500).values():
            if commits_first:
                consumer.commit()
            for record in records:
                time.sleep(0.02)
                done[record.value] = True
            consumer.commit()

@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}})
@pytest.mark.parametrize("commits_first", [True, False])
def test_billing(kafka_cluster, commits_first):
    servers = kafka_cluster.bootstrap.split(",")
    done = {}
    kafka_cluster.run(billing, servers, done, commits_first)
    producer = KafkaProducer(bootstrap_servers=servers, client_id="shop")
    for number in range(20):
        producer.send("orders", b"%d" % number)
        time.sleep(0.1)
    producer.close()
    for _ in range(120):
        if len(done) == 20:
            break
        time.sleep(1)
    kafka_cluster.calm()
    assert len(done) == 20, "an order was not billed"
"""


def test_search__finds_shrinks_and_repeats(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=COMMITS_FIRST)
    result = pytester.runpytest_subprocess("-q", "--kcluster-search", "50", "-k", "True")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    print(text)
    assert "Without faults the test passes. It needs one step: kill app billing" in text
    replay = re.search(r"replay: pytest (.* --kcluster-steps \S+)", text)
    assert replay is not None
    again = pytester.runpytest_subprocess("-q", *replay[1].replace("'", "").split())
    again.assert_outcomes(failed=1)


def test_search__a_sound_test_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=COMMITS_FIRST)
    result = pytester.runpytest_subprocess("-q", "--kcluster-search", "20", "-k", "False")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*: 20 runs with faults, none failed"])
