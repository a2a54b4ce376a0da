"""`kcluster` with brokers of older releases: it shows them, and upgrades one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Start = Callable[..., Any]
Verb = Callable[..., tuple[int, str, str]]

TOPOLOGY = """\
name: lab
profile: fast
kafka_version: 2.8
brokers: [{id: 1}, {id: 2, kafka_version: 3.9}]
"""


def test_start__with_a_version_is_an_upgrade(
    start_up: Start, kcluster: Verb, tmp_path: Path
) -> None:
    (tmp_path / "topology.yaml").write_text(TOPOLOGY)
    up = start_up()
    assert "(lab: 2 brokers, Kafka 2.8 (broker 1) and 3.9 (broker 2), profile fast" in up.ready
    assert kcluster("kill", "1")[0] == 0
    code, out, err = kcluster("start", "1", "--kafka-version", "2.9")
    assert (code, out) == (2, "")
    assert "the nearest is 2.8" in err
    code, out, _ = kcluster("start", "1", "--kafka-version", "3.9")
    assert code == 0
    assert out.splitlines()[-1] == "broker 1 is up, as Kafka 3.9"
    lines = [line for line in kcluster("status")[1].splitlines() if line]
    assert [line.split()[-1] for line in lines[1:4]] == ["kafka", "3.9", "3.9"]
    brokers = json.loads(kcluster("status", "--json")[1])["brokers"]
    assert [broker["kafka_version"] for broker in brokers] == ["3.9", "3.9"]
