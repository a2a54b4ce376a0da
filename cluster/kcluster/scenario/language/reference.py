"""The reference of scenario files: a page for each part and each action, from the same classes as
the JSON Schema.

Owns: the list of pages, and their content.  Never: lays out text (reference_text.py).
Kafka: no counterpart; kafka-configs.sh --help lists the configs it takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec import Struct

from kcluster.checks.anomalies import ANOMALIES
from kcluster.config.files.fields import fields_of
from kcluster.config.topology.acl_keys import AclKeys
from kcluster.config.topology.keys import BrokerKeys, LinkKeys, NetworkKeys, TopicKeys, TopologyKeys
from kcluster.config.topology.security_keys import SecurityKeys, UserKeys
from kcluster.events import EVENT_TYPES
from kcluster.evidence.causes import MEANINGS
from kcluster.operations.conditions import FORMS
from kcluster.operations.targets import TARGET_WORDS
from kcluster.scenario.actions import ACTIONS
from kcluster.scenario.language.model import (
    Checks,
    ConsumerSpec,
    ProcessorSpec,
    ProducerSpec,
    StepOptions,
    TransactionSpec,
    Trigger,
)
from kcluster.scenario.language.scenario import ScenarioKeys
from kcluster.scenario.play.nemesis import Profile


class KeyLine(NamedTuple):
    """A key of the reference: the form of its value, its default ("" for none), its meaning."""

    key: str
    form: str
    default: str
    is_required: bool
    words: str


class KeyTable(NamedTuple):
    """Keys of one mapping."""

    heading: str
    lines: tuple[KeyLine, ...]


class WordTable(NamedTuple):
    """Words or forms with their meanings."""

    heading: str
    lines: tuple[tuple[str, str], ...]


class Page(NamedTuple):
    """One topic of the reference.  `title` is one sentence; `example` is YAML."""

    name: str
    title: str
    tables: tuple[KeyTable | WordTable, ...] = ()
    prose: str = ""
    example: str = ""
    is_action: bool = False


def pages() -> dict[str, Page]:
    """All pages by name: the parts of a file, then the actions."""
    found = [*_parts(), *_words(), *(_action(verb) for verb in sorted(ACTIONS))]
    return {page.name: page for page in found}


def action_lines() -> tuple[tuple[str, str], ...]:
    """Each action with its first sentence."""
    return tuple((verb, _sentence(cls.__doc__)) for verb, cls in sorted(ACTIONS.items()))


def _parts() -> Iterator[Page]:
    """The pages about the parts of a file."""
    yield Page(
        "file",
        "The keys of a scenario file.",
        (_keys("", ScenarioKeys, _SECTIONS),),
        example="kcluster scenario new my.yaml",
    )
    yield Page(
        "topology",
        "The cluster: brokers, topics, latencies.",
        (
            _keys("", TopologyKeys),
            _keys("brokers, in a list", BrokerKeys),
            _keys("security", SecurityKeys),
            _keys("security.users, by name", UserKeys),
            _keys("security.acls, in a list", AclKeys),
            _keys("topics: {name: ...}", TopicKeys),
            _keys("network", NetworkKeys),
            _keys("network: {links: [...]}", LinkKeys),
        ),
        "A topology file has these keys at its top; in a scenario they stand below `topology`, or"
        " `topology` is the path of such a file.  Configs may be written with dots or underscores.",
        "topology: {brokers: 3, profile: fast, topics: {orders: {partitions: 3}}}",
    )
    yield Page(
        "workload",
        "The producers, consumers and processors of a scenario.",
        (
            _keys("producers", ProducerSpec),
            _keys("transactions", TransactionSpec),
            _keys("consumers", ConsumerSpec),
            _keys("processors", ProcessorSpec),
        ),
        "Each is a mapping, or a list of mappings.  With profile fast, the time constants of these"
        " clients are divided by 100 too.",
        "workload:\n"
        "  producers: {topic: orders, name: shop, rate: 200/s, acks: all}\n"
        "  consumers: {topics: orders, group: billing, members: 2}",
    )
    yield Page(
        "steps",
        "What happens, in order: a step has one action, and says when.",
        (_keys("when it is played", Trigger), _keys("what else it may say", StepOptions)),
        "Triggers of one step wait one after the other; a step without a trigger is played at once"
        " after the one above it.",
        "steps:\n"
        "  - {at: 5s, kill: leader(orders-0), as: old}\n"
        "  - {when: isr(orders-0) = 2, within: 10s, wait: }\n"
        "  - {after: 1s..3s, start: old}\n"
        "  - {every: 2s, times: 3, pause: any broker, for: 500ms}",
    )
    yield Page(
        "checks",
        "What must be true in the end.",
        (_keys("", Checks),),
        "Without checks the verdict must be valid.",
        "checks:\n"
        "  anomalies: {lost-write: some}\n"
        "  causes: [acks=1, leader-election]\n"
        "  events: leader_elected\n"
        "  at_end: isr(orders-0) = 3\n"
        "  writes_unavailable: < 1s",
    )


def _words() -> Iterator[Page]:
    """The pages about the words that the parts use."""
    yield Page(
        "actions",
        "What a step can do; each has its own page.",
        (WordTable("", action_lines()),),
        "In a scenario an action is a step's key; `kcluster fault` performs one on a running"
        " cluster.",
    )
    yield Page(
        "targets",
        "The nodes that an action means.",
        (WordTable("", tuple((w.EXAMPLE, _sentence(w.__doc__)) for w in TARGET_WORDS)),),
        "A number, a word, or several, separated by commas or as a list.  They are looked up when"
        " the step is played.  `any 2 followers(orders-0)` draws two of them.",
        "kill: any 2 brokers\nisolate: {nodes: leader(orders-0), others: [2, client billing]}",
    )
    yield Page(
        "conditions",
        "What `when`, `at_end` and `kcluster wait` can wait for.",
        (WordTable("", FORMS),),
        example="{when: isr(orders-0) < 2, within: 5s, kill: 1}",
    )
    yield Page(
        "anomalies",
        "Broken promises to clients, for `checks: {anomalies: ...}`.",
        (WordTable("", tuple((name, _capital(a.MEANING)) for name, a in ANOMALIES.items())),),
    )
    yield Page(
        "causes",
        "What can explain an anomaly, for `checks: {causes: ...}`.",
        (WordTable("", tuple((str(cause), _capital(text)) for cause, text in MEANINGS.items())),),
        "An error that a client got, such as NOT_LEADER_OR_FOLLOWER, is a cause too.",
    )
    yield Page(
        "events",
        "What happens in a cluster, for `events`, `no_events` and conditions.",
        (WordTable("", tuple(_event_lines())),),
    )
    yield Page("values", "How times, sizes, rates and shares are written.", (_VALUES,))


_VALUES: Final = WordTable(
    "",
    (
        ("250ms, 5s, 2m, 1h", "A time.  Only 0 needs no unit: `for: 1` is refused."),
        ("5s..20s", "A time between two, drawn by the seed."),
        ("100, 64KiB, 1MB", "A size; a bare number is bytes."),
        ("50/s, 600/m", "A rate; a bare number is per second."),
        ("10%, 0.1", "A share."),
        ("3, >= 1, some, none", "What a number must be."),
        ("< 1s, some, none", "What a time must be."),
        ("true, false", "A flag."),
    ),
)
_SECTIONS: Final = (
    KeyLine("topology", "mapping, or a file", "", False, "The cluster; without it, 3 brokers."),
    KeyLine("workload", "mapping", "", False, "Producers, consumers and processors."),
    KeyLine("steps", "list", "", False, "What happens, in order."),
    KeyLine("checks", "mapping", "", False, "What must be true in the end."),
)


def _action(verb: str) -> Page:
    cls = ACTIONS[verb]
    tables: list[KeyTable | WordTable] = [_keys("", cls)] if fields_of(cls) else []
    if verb == "faults":
        tables.append(KeyTable("keys of a profile", (_KINDS, *_keys("", Profile).lines)))
    short = f"`{verb}: x` means `{verb}: {{{cls.SHORT}: x}}`.  " if cls.SHORT else ""
    words = " ".join((cls.__doc__ or "").split())
    return Page(verb, words, tuple(tables), short.strip(), cls.EXAMPLE, is_action=True)


_KINDS: Final = KeyLine(
    "kinds",
    "list of actions",
    "",
    True,
    "What can fail: {kill: any broker}, with `weight` (its probability, relative to the others') "
    "and `repair` (the time until it is undone).",
)


def _keys(heading: str, struct: type[Struct], more: tuple[KeyLine, ...] = ()) -> KeyTable:
    lines = (
        KeyLine(field.key, field.kind.form(), field.default_text, field.required, field.words)
        for field in fields_of(struct)
    )
    return KeyTable(heading, (*lines, *more))


def _event_lines() -> Iterator[tuple[str, str]]:
    for each in EVENT_TYPES:
        words = _sentence(each.__doc__)
        is_of_a_field = words.startswith("`")
        yield str(each.__struct_config__.tag), "" if is_of_a_field else words


def _sentence(doc: str | None) -> str:
    """The first sentence of a docstring; "" if there is none."""
    words = " ".join((doc or "").split())
    return f"{words.split('. ')[0].rstrip('.')}." if words else ""


def _capital(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
