"""`kcluster clock pause|resume|speed 0.1|step leader_elected`: steer the running cluster's clock.

Owns: the verb: its options, its lines.  Never: stops the clock (handle/clock.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from kcluster.cli.click_tools import Section, control_options, print_answer, section
from kcluster.cli.errors import CommandError
from kcluster.cli.remote import Remote
from kcluster.json_types import JsonObject


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
        raise CommandError(f"clock {change or ''} {wrong}", 2)
    remote = Remote(name)
    if change is None:
        clock = remote.get("clock")
    else:
        wanted: JsonObject = {change: True}
        if change == "speed":
            wanted = {change: speed_of(value or "")}
        elif change == "step":
            wanted = {change: value or "any", "within": within}
        options = {"within": "--within"}
        clock = remote.post("clock", wanted, options=options, timeout_s=None)
    print_answer(clock, clock_lines(clock, remote.name), as_json)


def clock_lines(clock: JsonObject, name: str) -> Iterator[str]:
    """The event to which the clock was stepped, and the lines about the clock's pace."""
    if clock["line"]:
        yield clock["line"]
    since_s = (clock["now_ms"] - clock["began_ms"]) / 1000
    state = "paused" if clock["paused"] else "running"
    slow = "" if clock["speed"] == 1 else f", speed {clock['speed']:g}"
    hint = "  (kcluster clock resume)" if clock["paused"] else ""
    yield f"{name}: the clock is {state} at {since_s:.3f} s{slow}{hint}"


def speed_of(text: str) -> float:
    """The number in `0.1` or `0.1x`; CommandError for any other text."""
    try:
        return float(text.removesuffix("x"))
    except ValueError:
        raise CommandError(f"speed {text}: not a number; write 0.1", 2) from None
