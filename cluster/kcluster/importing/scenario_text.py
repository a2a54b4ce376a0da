"""Steps from a log as a scenario file.

Owns: the file's layout and comments, the small workload that gives the run a verdict.  Never:
decides on steps (log_steps.py). Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from kcluster.config.files.durations import in_seconds
from kcluster.config.files.scalars import scalar
from kcluster.config.topology.specs import TopicSpec
from kcluster.importing.log_steps import LogStep, LogSteps
from kcluster.importing.topology_text import left_out_lines, text_for_comment

LEAD_MS: Final = 5_000
"""The time from the start of the scenario to its first step, in which clients begin."""
_AFTER_MS: Final = 30_000
_PRODUCERS: Final = 3
_MESSAGE_CHARS: Final = 140


def scenario_text(
    found: LogSteps, topology: Sequence[str], topics: Sequence[TopicSpec], origin: str
) -> str:
    """The scenario file; `topology` has the lines of its topology."""
    first_ms = found.steps[0].at_ms
    last_ms = found.steps[-1].at_ms
    lead = in_seconds(LEAD_MS)
    lines = [
        f"# Imported by `kcluster import` from {origin}.",
        f"# {lead} here is {clock(first_ms)} in the log. Above each step is the line",
        "# that it comes from. Where the line came later than its cause, the time is worked out.",
        *topology,
        *_workload(topics),
        f"duration: {in_seconds(LEAD_MS + last_ms - first_ms + _AFTER_MS)}",
        "steps:",
    ]
    for step in found.steps:
        lines += _step(step, step.at_ms - first_ms + LEAD_MS)
    return "\n".join([*lines, *left_out_lines(found.left_out)]) + "\n"


def _workload(topics: Sequence[TopicSpec]) -> Iterator[str]:
    chosen = sorted(topics, key=lambda topic: (-topic.replication_factor, topic.name))
    if not chosen:
        return
    yield "workload:  # not from the log"
    yield "  producers:"
    for topic in chosen[:_PRODUCERS]:
        topic_name, name = scalar(topic.name), scalar(f"{topic.name}-writer")
        yield f"    - {{topic: {topic_name}, name: {name}, rate: 20/s, keys: 100}}"


def _step(step: LogStep, at_ms: int) -> Iterator[str]:
    message = text_for_comment(step.origin.message)
    if len(message) > _MESSAGE_CHARS:
        message = message[: _MESSAGE_CHARS - 3] + "..."
    yield f"  # {text_for_comment(step.origin.source)}:{step.origin.line}: {message}"
    if step.why:
        yield f"  # {step.why}"
    yield f"  - {{at: {in_seconds(at_ms)}, {step.verb}: {_value(step.value)}}}"


def _value(value: object) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{scalar(k)}: {_value(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_value, value)) + "]"
        case _:
            return scalar(str(value))


def clock(ms: int) -> str:
    """A time in the form in which the log shows it."""
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S},{ms % 1000:03}"
