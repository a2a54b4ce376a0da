"""The options of `kcluster up`: declared once, for click and for a parser that does without it.

Owns: UpOptions, reading a plain command line.  Never: imports click: that would take a third of the
time until the first broker answers (main.py).
Kafka: no counterpart.

To add an option: an annotated field of UpOptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, NamedTuple, get_type_hints

from kcluster.config.files.numbers import whole_number


class UpOption(NamedTuple):
    """The form of an option.  `numbers`: the least and the greatest, if it takes a number; `words`:
    the allowed words, if it does not take any text.  Without a metavar, numbers or words the
    field's type distinguishes a flag from text."""

    flags: tuple[str, ...]
    help: str
    metavar: str | None = None
    numbers: tuple[int, int] | None = None
    words: tuple[str, ...] = ()
    is_flag: bool = False


def _flag(*flags: str, help: str) -> UpOption:
    return UpOption(flags, help, is_flag=True)


class UpOptions(NamedTuple):
    """The command line of `kcluster up`."""

    file: str | None = None
    brokers: Annotated[
        int | None,
        UpOption(
            ("--brokers",),
            "The number of brokers. Without FILE, topology.yaml is then ignored.",
            metavar="N",
            numbers=(1, 100),
        ),
    ] = None
    base_port: Annotated[
        int | None,
        UpOption(
            ("--base-port",),
            "Brokers listen on P, P+1, …; 0 means free ports.  [default without FILE: 9092]",
            metavar="P",
            numbers=(0, 65535),
        ),
    ] = None
    profile: Annotated[
        str | None,
        UpOption(
            ("--profile",),
            "kafka: Kafka's time constants. fast: a hundredth of them, for tests; only leaders move"
            " back after 300 s, as in Kafka. slow: three times as long, for a class.  [default: the"
            " topology's, else kafka]",
            words=("kafka", "fast", "slow"),
        ),
    ] = None
    name: Annotated[
        str | None,
        UpOption(
            ("--name",), "The name for other verbs.  [default: $KCLUSTER_NAME, else the topology's]"
        ),
    ] = None
    as_json: Annotated[bool, _flag("--json", help="Print one JSON object per line.")] = False
    quiet: Annotated[
        bool, _flag("-q", "--quiet", help="Print no events: other verbs show them.")
    ] = False
    out: Annotated[
        str | None,
        UpOption(
            ("--out",), "Write the run to a directory below DIR, as save does.", metavar="DIR"
        ),
    ] = None
    record: Annotated[
        str | None,
        UpOption(
            ("--record",), "Write what is done to the cluster as a scenario file.", metavar="FILE"
        ),
    ] = None
    no_record: Annotated[
        bool, _flag("--no-record", help="Record nothing: no verdict, no save.")
    ] = False
    page: Annotated[bool, _flag("--page", help="Serve a live page, and print its address.")] = False
    open: Annotated[bool, _flag("--open", help="Show the live page in a browser.")] = False
    demo: Annotated[
        bool, _flag("--demo", help="Start a topic, a producer and a consumer to look at.")
    ] = False
    trace_requests: Annotated[
        bool, _flag("--trace-requests", help="Print a line for each request.")
    ] = False
    ground: Annotated[
        str | None,
        UpOption(
            ("--ground",),
            "kafka: processes of a real Apache Kafka instead of simulated brokers; kafka:4.3.1: of"
            " that version.  Needs Java 17 and, for the jars, Maven.",
            metavar="KAFKA[:VERSION]",
        ),
    ] = None
    kafka_home: Annotated[
        str | None,
        UpOption(("--kafka-home",), "With --ground: an unpacked Kafka to start.", metavar="DIR"),
    ] = None
    no_proxy: Annotated[
        bool,
        _flag(
            "--no-proxy",
            help="With --ground: clients connect to the brokers themselves, so that their requests"
            " are not seen.",
        ),
    ] = False
    network: Annotated[
        str | None,
        UpOption(
            ("--network",),
            "With --ground: whether each node gets a network namespace, for network faults (root on"
            " Linux).  [default: where that is possible]",
            words=("yes", "no"),
        ),
    ] = None


def declared() -> dict[str, UpOption]:
    """The options by field, in order; the argument FILE is not an option."""
    hints = get_type_hints(UpOptions, include_extras=True)
    return {
        name: hint.__metadata__[0] for name, hint in hints.items() if hasattr(hint, "__metadata__")
    }


def quick_up_options(words: Sequence[str]) -> UpOptions | None:
    """The options of a plain `kcluster up …`; None if click must parse it: for `--help`, errors,
    and everything else that is uncertain."""
    options = declared()
    by_flag = {flag: name for name, option in options.items() for flag in option.flags}
    found: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        flag, has_value, value = word.partition("=")
        name = by_flag.get(flag)
        if name is None:
            if not word or word.startswith("-") or "file" in found:
                return None
            found["file"] = word
        elif options[name].is_flag:
            if has_value:
                return None
            found[name] = True
        else:
            if len(flag) == 2:
                return None
            checked = _checked(options[name], value if has_value else next(rest, ""))
            if checked is None:
                return None
            found[name] = checked
    return UpOptions(**found)


_NO_VALUE: Final = ("", "-")


def _checked(option: UpOption, text: str) -> str | int | None:
    """The value of an option; None if it is invalid, or click must report the problem."""
    if text[:1] in _NO_VALUE:
        return None
    if option.numbers is not None:
        low, high = option.numbers
        number = whole_number(text)
        return number if number is not None and low <= number <= high else None
    return text if not option.words or text in option.words else None
