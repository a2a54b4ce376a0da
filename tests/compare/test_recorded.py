"""Our responses in virtual time, compared with those of Apache Kafka 4.3.1 (`make compare`)."""

from __future__ import annotations

import pytest

from compare import recorded
from compare.cases import families
from compare.checking import check, check_conversation
from compare.conversations import conversations
from compare.running import Runner
from compare.virtual import Virtual


@pytest.mark.parametrize("family", families())
def test_compare__answers_as_kafka_does(family: str) -> None:
    runner = Runner(Virtual(), "cmp")
    outcomes = recorded.load(family)
    found = [one for case in families()[family] for one in check(runner, family, case, outcomes)]
    unexplained = [str(one) for one in found if one.reason is None]
    assert not unexplained, "\n" + "\n".join(unexplained)


@pytest.mark.parametrize("name", conversations())
def test_compare__answers_each_step_of_a_conversation_as_kafka_does(name: str) -> None:
    found = check_conversation(Runner(Virtual(), "cmp"), conversations()[name])
    unexplained = [str(one) for one in found if one.reason is None]
    assert not unexplained, "\n" + "\n".join(unexplained)
