"""Our responses in virtual time, compared with those recorded of Apache Kafka (`make compare`)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from functools import cache

import pytest
from _pytest.mark import ParameterSet

from compare.checking import CONVERSATIONS, check, check_conversation
from compare.in_memory import our_system
from compare.what_changed import DOCUMENT, Answers, document, unused_changes
from kcluster.conform.case import Case, Conversation
from kcluster.conform.cases import families, is_secured
from kcluster.conform.conversations import conversations
from kcluster.conform.recorded import Recordings
from kcluster.conform.references import NEWEST, REFERENCES, Reference
from kcluster.conform.running import CaseRunner

RECORDINGS = Recordings()
FAMILIES = [(one, family) for one in REFERENCES for family in families(one)]
outcomes_of = cache(RECORDINGS.load)
telling = cache(RECORDINGS.telling)


def name_of(value: Reference | Conversation | str) -> str:
    """Of a parameter, in the names of tests."""
    return value if isinstance(value, str) else value.name


def talks() -> Iterator[ParameterSet]:
    """Conversations; slow are those that an older release answers as the newest does."""
    for reference in REFERENCES:
        told = telling(CONVERSATIONS, reference)
        for name, talk in conversations().items():
            is_told = reference == NEWEST or name in told
            marks = () if is_told else (pytest.mark.slow,)
            yield pytest.param(reference, talk, marks=marks)


@pytest.mark.parametrize(("reference", "family"), FAMILIES, ids=name_of)
def test_compare__answers_as_kafka_does(reference: Reference, family: str) -> None:
    """With the versions before and after each change of the answer."""
    told = telling(family, reference)
    # What is not recorded of the newest release is asked, and found, here.
    rest: Container[int] | None = None if reference == NEWEST else ()
    answers_as_kafka_does(reference, family, lambda case: told.get(case.name, rest))


@pytest.mark.slow
@pytest.mark.parametrize(("reference", "family"), FAMILIES, ids=name_of)
def test_compare__answers_as_kafka_does_in_all_versions(reference: Reference, family: str) -> None:
    answers_as_kafka_does(reference, family, lambda _: None)


def answers_as_kafka_does(
    reference: Reference, family: str, only: Callable[[Case], Container[int] | None]
) -> None:
    runner = CaseRunner(our_system(reference, is_secured(family)), "cmp", reference)
    outcomes, cases = outcomes_of(family, reference), families(reference)[family]
    found = [one for case in cases for one in check(runner, family, case, outcomes, only(case))]
    unexplained = [str(one) for one in found if one.reason is None]
    assert not unexplained, "\n" + "\n".join(unexplained)


@pytest.mark.parametrize(("reference", "conversation"), list(talks()), ids=name_of)
def test_compare__answers_each_step_of_a_conversation_as_kafka_does(
    reference: Reference, conversation: Conversation
) -> None:
    system = our_system(reference, conversation.is_secured)
    runner = CaseRunner(system, "cmp", reference)
    found = check_conversation(runner, conversation, outcomes_of(CONVERSATIONS, reference))
    unexplained = [str(one) for one in found if one.reason is None]
    assert not unexplained, "\n" + "\n".join(unexplained)


@pytest.mark.parametrize("reference", REFERENCES, ids=name_of)
def test_recordings__have_no_case_and_no_version_that_is_not_asked(reference: Reference) -> None:
    asked = {
        family: {case.name: {*case.each_version(reference)} for case in cases}
        for family, cases in families(reference).items()
    }
    asked[CONVERSATIONS] = {name: {0} for name in conversations()}
    for family, versions in asked.items():
        for name, outcomes in outcomes_of(family, reference).items():
            assert name in versions, family
            assert reference != NEWEST or outcomes.keys() <= versions[name], f"{family}: {name}"


def test_what_changed__every_change_between_the_releases_has_its_words_on_the_page() -> None:
    answers = Answers(RECORDINGS)
    changed = list(answers.changed())
    unexplained = [str(one) for one in changed if one.change is None]
    assert not unexplained, "changes.py has no words for:\n" + "\n".join(unexplained)
    assert not unused_changes(changed)
    assert DOCUMENT.read_text("utf-8") == document(answers), "make compare ARGS=--recorded"
