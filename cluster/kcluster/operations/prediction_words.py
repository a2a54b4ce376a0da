"""The words of predictions: questions, their choices, and the reasons of answers.

Owns: these texts.  Never: decides anything.
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Final

from kcluster.events.reasons import ElectionKind
from kcluster.metadata.records import NO_LEADER
from kcluster.operations.prediction import (
    Notice,
    Prediction,
    PredictionReason,
    QuestionKind,
    RecordFate,
    Writes,
)

_CHOICES: Final[dict[str, str]] = {
    Notice.AT_ONCE: "at once",
    Notice.AFTER_SESSION: "when the broker's session has timed out",
    Notice.NEVER: "never",
    RecordFate.KEPT: "it is kept",
    RecordFate.LOST: "it is lost",
    RecordFate.UNAVAILABLE: "nobody can read it until a broker returns",
    Writes.CONTINUE: "yes",
    Writes.NOT_ENOUGH_REPLICAS: "no: NOT_ENOUGH_REPLICAS",
    Writes.NO_LEADER: "no: there is no leader",
}


def question_text(question: Prediction) -> str:
    """The text of a question: `Who leads orders-0 afterwards?`"""
    match question.kind:
        case QuestionKind.NOTICED:
            return "When does the controller act?"
        case QuestionKind.LEADER:
            return f"Who leads {question.partition} afterwards?"
        case QuestionKind.RECORD:
            return (
                f"What becomes of the record at offset {question.offset} of {question.partition}?"
            )
        case QuestionKind.WRITES:
            return f"Can producers with acks=all go on writing to {question.partition}?"


def choice_text(choice: int | str) -> str:
    """The text of a choice: `broker 2`, `nobody`, `it is lost`."""
    if isinstance(choice, str):
        return _CHOICES[choice]
    return "nobody" if choice == NO_LEADER else f"broker {choice}"


def answer_reason(question: Prediction) -> str:
    """The reason why the answer is right, in a sentence or two."""
    reason = question.reason
    match question.kind:
        case QuestionKind.NOTICED:
            return _why_noticed(question)
        case QuestionKind.LEADER:
            return _why_leader(reason)
        case QuestionKind.RECORD:
            return _why_record(question)
        case QuestionKind.WRITES:
            return _why_writes(reason)


def _why_noticed(question: Prediction) -> str:
    if question.answer == Notice.AT_ONCE:
        return (
            "A broker that shuts down cleanly asks the controller first, which moves its leaders."
        )
    limit_s = question.reason.timeout_ms / 1000
    return (
        "A broker that is lost says nothing. The controller misses its heartbeats for"
        f" broker.session.timeout.ms, {limit_s:g} s, and then fences it."
    )


def _why_leader(reason: PredictionReason) -> str:
    if reason.leader == reason.was_leader:
        return "The present leader may stay."
    match reason.election:
        case ElectionKind.IN_SYNC:
            return "The first replica in the assignment that is alive and in the ISR leads."
        case ElectionKind.ELIGIBLE:
            return "The ISR is empty, and this replica is an eligible leader (ELR, KIP-966)."
        case ElectionKind.LAST_KNOWN_LEADER:
            return "ISR and ELR are empty, so the last leader leads again, uncleanly."
        case ElectionKind.UNCLEAN:
            return (
                "Nobody in the ISR is alive, and unclean.leader.election.enable allows any replica."
            )
        case _:
            isr, elr = _ids(reason.isr), _ids(reason.elr)
            return f"Nobody who may lead is alive: ISR {isr}, ELR {elr}; others would be unclean."


def _why_record(question: Prediction) -> str:
    reason, offset = question.reason, question.offset
    if question.answer == RecordFate.UNAVAILABLE:
        return "The partition has no leader. The record is on the disks of brokers that are gone."
    end = f"The log of the new leader, broker {reason.leader}, ends at {reason.log_end_offset}"
    if question.answer == RecordFate.KEPT:
        return f"{end}, so it has the record at {offset}."
    return f"{end}, so it lacks the record at {offset}. What the leader lacks, the others drop."


def _why_writes(reason: PredictionReason) -> str:
    if reason.leader == NO_LEADER:
        return "Only a leader takes writes."
    return f"The ISR is {_ids(reason.isr)}, and min.insync.replicas is {reason.min_isr}."


def _ids(brokers: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, brokers))}]"
