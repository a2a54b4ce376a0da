"""A lesson on a live cluster: it runs to the end of each part, and waits while students read.

Owns: LiveLesson: the cluster, its clients, the pauses.  Never: asks, prints, serves a page.
Kafka: no counterpart.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Final

from kcluster.handle.cluster import Cluster
from kcluster.learn.lesson import Lesson, LessonPart
from kcluster.operations.errors import ClusterError
from kcluster.scenario.play.live import LiveStage
from kcluster.scenario.play.phases import ScenarioRun
from kcluster.scenario.started import note_workload

LOOK_S: Final = 0.05
LATE_S: Final = 30.0
"""Extra time for a part, on a busy machine."""


class LiveLesson:
    """The cluster of a lesson, with its workload.  Its clock stands still except in `play`."""

    def __init__(self, lesson: Lesson) -> None:
        scenario = lesson.scenario
        self.lesson = lesson
        self.cluster = Cluster(scenario.topology, seed=scenario.first_seed())
        self._stage: LiveStage | None = None
        self._at_ms = 0

    def __enter__(self) -> LiveLesson:
        self.cluster.__enter__()
        self.cluster.call(self._begin)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cluster.resume_clock()
        if self._stage is not None:
            self.cluster.call(self._stage.close)
        self.cluster.__exit__(kind, error, traceback)

    def play(self, part: LessonPart) -> None:
        """Let the cluster run to the end of this part.  ClusterError if the clock was stopped from
        outside and is not resumed."""
        self.cluster.resume_clock()
        until_s = time.monotonic() + (part.until_ms - self._at_ms) / 1000 + LATE_S
        while not self._has_come_to(part):
            if time.monotonic() > until_s:
                raise ClusterError(f"{part.title}: the cluster's clock does not go on")
            time.sleep(LOOK_S)
        self._at_ms = part.until_ms

    def _begin(self) -> None:
        scenario, cluster = self.lesson.scenario, self.cluster
        seed = scenario.first_seed()
        # With the cluster's ledger, so that its verdict knows what the lesson's clients have sent.
        stage = self._stage = LiveStage(cluster, seed, cluster.ledger)
        for part in self.lesson.parts:
            stage.at(part.until_ms, cluster.driver.pause_clock)
        note_workload(cluster, scenario.workload)
        ScenarioRun(scenario, stage, cluster.recorder, seed).begin()
        cluster.driver.pause_clock()

    def _has_come_to(self, part: LessonPart) -> bool:
        stage = self._stage
        assert stage is not None, "the lesson has begun"
        return self.cluster.call(lambda: stage.now_ms) >= part.until_ms
