"""A lesson on a live cluster: it stands still between the parts."""

from __future__ import annotations

from pathlib import Path

from kcluster.learn.lesson import load_lesson
from kcluster.learn.live import LiveLesson
from kcluster.scenario.forking import fork_cluster
from kcluster.scenario.language.loader import parse_action

SCENARIO = """\
# A leader dies.
topology: {brokers: 3, profile: fast, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload:
  producers: {topic: orders, name: shop, rate: 100/s}
steps:
  - {at: 300ms, kill: 1}
duration: 1s
"""
LESSON = """\
title: Broker 1 dies
intro: Who leads?
scenario: scenario.yaml
parts:
  - {title: Before, until: 200ms}
  - {title: After, until: 900ms}
"""


def test_live__the_cluster_runs_part_by_part(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text(SCENARIO, "utf-8")
    (tmp_path / "lesson.yaml").write_text(LESSON, "utf-8")
    lesson = load_lesson(tmp_path / "lesson.yaml")
    with LiveLesson(lesson) as live:
        assert live.cluster.clock().paused
        assert live.cluster.leader("orders", 0) == 1
        live.play(lesson.parts[0])
        assert live.cluster.clock().paused
        assert live.cluster.leader("orders", 0) == 1
        live.play(lesson.parts[1])
        assert live.cluster.clock().paused
        assert live.cluster.leader("orders", 0) == 2
        verdict = live.cluster.verdict()
        assert verdict.anomalies == ()
        assert verdict.sent > 10, "the cluster's own record has the lesson's clients"
        futures = fork_cluster(live.cluster, [parse_action("kill: leader(orders-0)")], None, 300)
        assert "acks=all" in futures.difference.text
        assert {send.producer for send in futures.here.record.sends} == {"shop"}
        assert not any("stands in" in line for line in futures.assumptions)
