"""The clock of a cluster: pause, resume, slow motion, step.

Owns: these routes.  Never: stops anything itself (handle/clock.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, structs

from kcluster.contract import Note
from kcluster.events.render import note_line, note_values
from kcluster.handle.clock import ClockStatus
from kcluster.json_types import JsonObject
from kcluster.web.api.waiting import seconds
from kcluster.web.call import ApiCall
from kcluster.web.held import HeldCluster
from kcluster.web.problems import wrong_value
from kcluster.web.routes import Runs, route


class ClockWanted(Struct):
    """A change to the cluster's clock: exactly one of pause, resume, speed and step."""

    pause: Annotated[bool, Meta(description="Freeze the whole cluster at this moment.")] = False
    resume: Annotated[bool, Meta(description="Let it continue from where it stands.")] = False
    speed: Annotated[
        float | None, Meta(description="Run the cluster's clock at this speed, from 0.01 to 1.")
    ] = None
    step: Annotated[
        str | None,
        Meta(description="Run until the next event of this kind, or `any`, and freeze there."),
    ] = None
    within: Annotated[
        str, Meta(description="The longest time, by the machine's clock, to wait for a step.")
    ] = "60s"


class ClockAnswer(Struct, frozen=True):
    """`now_ms`: the cluster's clock; `began_ms`: the time of the first event; `steppable`: the
    kinds of events to step to; `event`: the event to which the clock was stepped, and `line` as
    text; `complete`: whether the cluster is a run that is over, played in virtual time."""

    now_ms: int
    began_ms: int
    paused: bool
    speed: float
    steppable: tuple[str, ...]
    complete: bool
    event: JsonObject | None = None
    line: str = ""


@route("GET", "/v1/clusters/<id>/clock", answer=ClockAnswer, errors=(404, 409), runs=Runs.AT_ONCE)
def show_clock(call: ApiCall) -> ClockAnswer:
    """What time it is in the cluster, and how its clock runs."""
    return clock_answer(call.held, call.held.source.clock())


@route(
    "POST",
    "/v1/clusters/<id>/clock",
    body=ClockWanted,
    answer=ClockAnswer,
    errors=(404, 409, 422),
    runs=Runs.WAITING,
)
def set_clock(call: ApiCall) -> ClockAnswer:
    """Freeze a cluster, let it continue, run it in slow motion, or step to an event."""
    wanted, held = call.values(ClockWanted), call.held
    cluster = held.cluster
    given = [wanted.pause, wanted.resume, wanted.speed is not None, wanted.step is not None]
    if sum(given) != 1:
        raise wrong_value("", "give one of pause, resume, speed, step")
    if wanted.step is not None:
        with call.while_client_stays():
            entry = cluster.step(wanted.step, within_s=seconds(wanted.within, "within"))
        return clock_answer(held, cluster.clock(), entry.note)
    if wanted.speed is not None:
        return clock_answer(held, cluster.set_speed(wanted.speed))
    return clock_answer(held, cluster.pause_clock() if wanted.pause else cluster.resume_clock())


def clock_answer(held: HeldCluster, status: ClockStatus, event: Note | None = None) -> ClockAnswer:
    """The answer about a clock.  `event`: the event to which it was stepped."""
    return ClockAnswer(
        **structs.asdict(status),
        began_ms=held.began_ms,
        complete=held.is_complete,
        event=None if event is None else note_values(event),
        line="" if event is None else note_line(event, held.began_ms),
    )
