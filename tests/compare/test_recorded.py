"""Our responses in virtual time, compared with the recorded ones of Apache Kafka (`make compare`)."""

from __future__ import annotations

import pytest

from compare.case import Conversation
from compare.cases import families
from compare.checking import CONVERSATIONS, check, check_conversation
from compare.conversations import conversations
from compare.recorded import Recordings
from compare.references import REFERENCES, Reference
from compare.running import Runner
from compare.virtual import Virtual

FAMILIES = [(one, family) for one in REFERENCES for family in families(one)]
TALKS = [(one, talk) for one in REFERENCES for talk in conversations().values()]


def name_of(value: Reference | Conversation | str) -> str:
    """Of a parameter, in the names of tests."""
    return value if isinstance(value, str) else value.name


@pytest.mark.parametrize(("reference", "family"), FAMILIES, ids=name_of)
def test_compare__answers_as_kafka_does(reference: Reference, family: str) -> None:
    runner = Runner(Virtual(reference), "cmp", reference)
    outcomes = Recordings().load(family, reference)
    cases = families(reference)[family]
    found = [one for case in cases for one in check(runner, family, case, outcomes)]
    unexplained = [str(one) for one in found if one.reason is None]
    assert not unexplained, "\n" + "\n".join(unexplained)


@pytest.mark.parametrize(("reference", "conversation"), TALKS, ids=name_of)
def test_compare__answers_each_step_of_a_conversation_as_kafka_does(
    reference: Reference, conversation: Conversation
) -> None:
    runner = Runner(Virtual(reference), "cmp", reference)
    found = check_conversation(runner, conversation, Recordings().load(CONVERSATIONS, reference))
    unexplained = [str(one) for one in found if one.reason is None]
    assert not unexplained, "\n" + "\n".join(unexplained)


@pytest.mark.parametrize("reference", REFERENCES, ids=name_of)
def test_recordings__have_no_case_that_does_not_exist(reference: Reference) -> None:
    asked = {
        family: {case.name for case in cases} for family, cases in families(reference).items()
    }
    asked[CONVERSATIONS] = set(conversations())
    for family, names in asked.items():
        assert not Recordings().load(family, reference).keys() - names, family
