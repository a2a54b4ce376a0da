"""`kcluster clock pause|resume|speed 0.1|step leader_elected`: steer the running cluster's clock.

Owns: the verb: its options, its request, its lines.  Never: stops the clock (handle/clock.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kcluster.cli.click_tools import Section, control_options, print_json, section
from kcluster.cli.control.client import Conversation
from kcluster.cli.control.protocol import ControlError, ControlRequest, handles

if TYPE_CHECKING:
    from kcluster.cli.control.session import ControlSession


class ClockRequest(ControlRequest, verb="clock"):
    """`change`: pause, resume, speed, step, or "" to look.  `value`: the speed, or the event."""

    change: str = ""
    value: str = ""
    within: str = "60s"


@section(Section.CLUSTER)
@click.command("clock")
@click.argument("change", type=click.Choice(["pause", "resume", "speed", "step"]), required=False)
@click.argument("value", required=False)
@click.option(
    "--within",
    metavar="TIME",
    default="60s",
    show_default=True,
    help="The longest time that a step may take.",
)
@control_options
def command(
    change: str | None, value: str | None, within: str, name: str | None, as_json: bool
) -> None:
    """Pause the running cluster, step it from event to event, or slow it down.

    'pause' freezes all brokers at once; clients see a stall.  Actions that you give meanwhile, such
    as kill, take effect at that moment, and wait for nothing.  'resume' lets the cluster continue.
    'step leader_elected' runs it until the next such event and freezes it at that moment; 'step'
    takes any event.  'speed 0.1' makes its clock ten times slower than the machine's; 0.01 to 1 are
    possible.  Without a word, the clock is shown.
    """
    if (change == "speed") != bool(value) and change != "step":
        wrong = "takes a number: kcluster clock speed 0.1" if change == "speed" else "takes no word"
        raise ControlError(f"clock {change or ''} {wrong}", 2)
    request = ClockRequest(change or "", value or "", within)
    with Conversation(name) as conversation:
        answer = conversation.ask(request, timeout_s=None)
    if as_json:
        print_json(answer)
    else:
        print("\n".join(answer["lines"]))


@handles(ClockRequest)
def handle(session: ControlSession, request: ClockRequest) -> dict[str, Any]:
    """Steer the clock; the answer has its state and, after a step, the event."""
    import msgspec

    from kcluster.events.render import note_line, note_values
    from kcluster.operations.conditions import limit_ms_of

    cluster = session.cluster
    lines: list[str] = []
    answer: dict[str, Any] = {"cluster": session.name}
    match request.change:
        case "pause":
            cluster.pause_clock()
        case "resume":
            cluster.resume_clock()
        case "speed":
            cluster.set_speed(speed_of(request.value))
        case "step":
            within_s = limit_ms_of(request.within) / 1000
            entry = cluster.step(request.value or "any", within_s=within_s)
            lines.append(note_line(entry.note, session.origin_ms))
            answer["event"] = note_values(entry.note)
    clock = cluster.clock()
    since_s = (clock.now_ms - session.origin_ms) / 1000
    state = "paused" if clock.paused else "running"
    slow = "" if clock.speed == 1 else f", speed {clock.speed:g}"
    hint = "  (kcluster clock resume)" if clock.paused else ""
    lines.append(f"{session.name}: the clock is {state} at {since_s:.3f} s{slow}{hint}")
    values = msgspec.to_builtins(clock)
    del values["steppable"]
    return answer | {"clock": values, "lines": lines}


def speed_of(text: str) -> float:
    """`0.1` or `0.1x` as a number; ControlError for any other text."""
    try:
        return float(text.removesuffix("x"))
    except ValueError:
        raise ControlError(f"speed {text}: not a number; write 0.1", 2) from None
