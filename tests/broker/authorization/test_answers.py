"""Denied requests get Apache Kafka 4.4.0's answers, in every API."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from tests.broker.authorization.cases import DENIED, PARTLY, RIGHTS, Case, shown
from tests.rig.secured import ADMIN, Secured

HERE = Path(__file__).parent
TOPICS = {name: [[1], [1]] for name in ("orders", "secret", "log")}


def recorded(name: str) -> dict[str, str]:
    lines = (HERE / name).read_text().splitlines()
    return {case: answer for case, _, answer in (line.partition(": ") for line in lines)}


WHEN_DENIED, WHEN_PARTLY = recorded("denied_4_4_0.txt"), recorded("partly_4_4_0.txt")


class Asked:
    """One cluster for many questions, none of which changes it."""

    def __init__(self, *rights: Any) -> None:
        self.rig = Secured(
            *rights,
            topics=TOPICS,
            auto_create_topics_enable=False,
            offsets_topic_replication_factor=1,
            transaction_state_log_replication_factor=1,
        )
        for kind in (0, 1):
            # The internal topics come with the first question for a coordinator.
            self.rig.wait(partial(self._finds, kind), "coordinator")
        self.ids = {name: topic.topic_id for name, topic in self._image.topics.items()}

    @property
    def _image(self) -> Any:
        broker = self.rig.dispatcher.broker(1)
        assert broker is not None
        return broker.image

    def _finds(self, kind: int) -> bool:
        wanted = m.FindCoordinatorRequest(key_type=kind, coordinator_keys=["g"])
        number = self.rig.send(ADMIN, ApiKey.FIND_COORDINATOR, 6, wanted)
        return not self.rig.replies.pop(number).coordinators[0].error_code

    def answer(self, case: Case) -> str:
        answer = self.rig.ask_as("bob", case.api, case.version, case.body(self.ids))
        return answer if isinstance(answer, str) else shown(answer)


@pytest.fixture(scope="module")
def without_rights() -> Asked:
    return Asked()


@pytest.fixture(scope="module")
def with_rights() -> Asked:
    return Asked(*RIGHTS)


@pytest.mark.parametrize("case", DENIED, ids=lambda case: case.name)
def test_denied__as_kafka_answers(case: Case, without_rights: Asked) -> None:
    assert without_rights.answer(case) == WHEN_DENIED[case.name]


@pytest.mark.parametrize("case", PARTLY, ids=lambda case: case.name)
def test_partly_denied__as_kafka_answers(case: Case, with_rights: Asked) -> None:
    assert with_rights.answer(case) == WHEN_PARTLY[case.name]
