"""A verdict in words, in two forms: a screen with the answer at its end, or everything.

Owns: the lines of a verdict, and the words for origins of outages.  Never: judges (verdict.py),
finds origins (origins.py). Kafka: no counterpart.

On a screen, the outages of one origin are one line; the long form has each window with its reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, TypeVar

from kcluster.checks.anomalies.base import Anomaly
from kcluster.checks.anomalies.lost_write import LostWrite
from kcluster.checks.availability import WRITES, Window
from kcluster.checks.chain.links import Link
from kcluster.checks.degraded import Degraded, DegradedKind, Ineligible, ReplicaState
from kcluster.checks.origins import Origin, OriginKind
from kcluster.checks.refusals import refused_line
from kcluster.checks.settings import Setting
from kcluster.checks.verdict_facts import Ground, Remedy, RemedyKind, VerdictFacts, counts_of
from kcluster.checks.violations import ExplainedViolation
from kcluster.clients.ledger import Partition
from kcluster.events.words.base import counted
from kcluster.protocol.errors import ErrorCode

NOT_JUDGED: Final = "not judged: what applications did with the records that they read"
MAX_SHOWN: Final = 20
"""The number of lines of each kind in the long form; JSON has all."""
SCREEN: Final = 24
"""The number of lines of a screen."""
MAX_NAMED: Final = 4
"""The number of partitions up to which a line names them; more are counted by topic."""
MAX_OUTAGES: Final = 4
MAX_OUTAGES_BESIDE: Final = 2
"""The number of outages shown beside anomalies, which get more room."""
MAX_ANOMALIES: Final = 3
MIN_LINKS: Final = 3
"""The number of links that each chain shows, however full the screen is."""
MAX_ERRORS: Final = 4
MAX_OFFLINE: Final = 8

T = TypeVar("T")

_KINDS: Final = {
    DegradedKind.OFFLINE: "offline",
    DegradedKind.UNCLEAN_ELECTION: "elected uncleanly",
    DegradedKind.UNDER_MIN_ISR: "below min.insync.replicas",
}
_DONE: Final = {
    OriginKind.KILLED: "{} killed",
    OriginKind.LOST_POWER: "{} lost power",
    OriginKind.WIPED: "{} lost {its} disk",
    OriginKind.DISK_FULL: "{}: disk full",
    OriginKind.STOPPED: "{} stopped",
    OriginKind.PAUSED: "{} paused",
    OriginKind.CUT_OFF: "{} cut off",
    OriginKind.CONTROLLER_DOWN: "controller down",
    OriginKind.SHAPED: "links{of} slowed",
    OriginKind.RULE: "a rule applied{at}",
    OriginKind.ELECTION: "leaders moved by an election",
    OriginKind.REASSIGNMENT: "partitions reassigned",
}
_REMEDIES: Final = {
    RemedyKind.START: "kcluster start down",
    RemedyKind.RESUME: "kcluster resume {ids}",
    RemedyKind.HEAL: "kcluster heal",
    RemedyKind.WAIT: "kcluster wait settled",
    RemedyKind.REPAIR: "kafka_cluster.repair()",
}
_NEEDED: Final = {
    RemedyKind.START: "{brokers} down",
    RemedyKind.RESUME: "{brokers} paused",
    RemedyKind.HEAL: "links are cut or slow",
    RemedyKind.WAIT: "replicas are catching up",
    RemedyKind.REPAIR: "",
}
_STATES: Final = {
    ReplicaState.DOWN: "down",
    ReplicaState.PAUSED: "paused",
    ReplicaState.RESTARTING: "restarting",
    ReplicaState.FENCED: "fenced",
    ReplicaState.OUT_OF_SYNC: "out of sync",
}


def reason_text(verdict: VerdictFacts) -> str:
    """The ground of the outcome: `3 lost-write, invariant epoch-back broken`."""
    match verdict.ground:
        case Ground.FINDINGS:
            broken = dict.fromkeys(each.name for each in verdict.violations)
            named = [f"invariant {name} broken" for name in broken]
            return ", ".join([*_counted(verdict.anomalies), *named])
        case Ground.NOTHING_SENT:
            return "nothing was sent"
        case Ground.UNSEEN:
            return "no proxy is before the real Kafka, so its clients' requests are not seen"
        case Ground.NOT_HEALED | Ground.OFFLINE:
            return unsettled_text(verdict.healed, verdict.offline, verdict.remedies)
        case Ground.UNREADABLE:
            return f"{counted(len(verdict.unreadable), 'batch')} of records cannot be read"
        case Ground.NO_FINDINGS:
            return "no anomaly" + (", and every invariant held" if verdict.checks_steps else "")


def _counted(anomalies: Iterable[Anomaly]) -> list[str]:
    return [f"{count:,} {name}" for name, count in counts_of(anomalies).items()]


def unsettled_text(healed: bool, offline: Sequence[str], remedies: Sequence[Remedy]) -> str:
    """The text about an unsettled run: `the cluster was not healed at the end: broker 3 is down;
    first: kcluster start down`."""
    text = "the cluster was not healed at the end"
    if healed:
        more = len(offline) - MAX_OFFLINE
        named = ", ".join(offline[:MAX_OFFLINE]) + (f" and {more} more" if more > 0 else "")
        text = f"without a leader at the end: {named}"
    needed, commands = [], []
    for remedy in remedies:
        ids = remedy.brokers
        are = f"{_brokers(ids)} {'are' if len(ids) > 1 else 'is'}"
        needed.append(_NEEDED[remedy.kind].format(brokers=are))
        commands.append(_REMEDIES[remedy.kind].format(ids=",".join(map(str, ids))))
    if any(needed):
        text += f": {', '.join(filter(None, needed))}"
    return text + (f"; first: {', then '.join(commands)}" if commands else "")


# --------------------------------------------------------------------------------- the forms


def screen_lines(verdict: VerdictFacts) -> list[str]:
    """At most a screen: degraded partitions, outages by their origins, anomalies with the last
    steps that led to them, counts, and the answer at the end."""
    anomalies, violations = verdict.anomalies, verdict.violations
    room = MAX_OUTAGES_BESIDE if anomalies or violations else MAX_OUTAGES
    before = _first(list(degraded_lines(verdict)), room, "more degradation")
    before += _first(list(outage_lines(verdict)), room, "more outage")
    shown = anomalies[:MAX_ANOMALIES]
    broken = violations[: max(1, MAX_ANOMALIES - len(shown))]
    after = _more_anomalies(anomalies[len(shown) :])
    if len(violations) > len(broken):
        after.append(f"... and {counted(len(violations) - len(broken), 'more violation')}")
    after += _first(_unreadable_lines(verdict), MAX_OUTAGES_BESIDE, "more unreadable batch")
    after += _first(_deleted_lines(verdict), 1, "more deleted range")
    after += _first([refused_line(x) for x in verdict.refused], MAX_OUTAGES_BESIDE, "more refusal")
    after += [*_errors_by_client(verdict), *_end_lines(verdict)]
    findings = [
        *((_anomaly_line(anomaly), anomaly.chain) for anomaly in shown),
        *((violation_line(verdict, violation), violation.chain) for violation in broken),
    ]
    left = SCREEN - len(before) - len(after) - len(findings)
    room = max(MIN_LINKS, left // max(1, len(findings)))
    chains = ([text, *_last(verdict, links, room)] for text, links in findings)
    return [*before, *chain.from_iterable(chains), *after]


def all_lines(verdict: VerdictFacts) -> list[str]:
    """The long form: each window with its reasons, then the chain of each anomaly, in the order of
    the short form."""
    lines = list(degraded_lines(verdict))
    for window in verdict.windows[:MAX_SHOWN]:
        lines.append(_window_line(verdict, window))
        lines += _chain(verdict, window.reasons)
    lines += _more(len(verdict.windows), "windows")
    for anomaly in verdict.anomalies[:MAX_SHOWN]:
        lines += [_anomaly_line(anomaly), *_chain(verdict, anomaly.chain)]
    lines += _more(len(verdict.anomalies), "anomalies")
    for violation in verdict.violations[:MAX_SHOWN]:
        lines += [violation_line(verdict, violation), *_chain(verdict, violation.chain)]
    lines += _more(len(verdict.violations), "violations")
    lines += _first(_unreadable_lines(verdict), MAX_SHOWN, "more unreadable batch")
    lines += _deleted_lines(verdict)
    lines += [refused_line(refused) for refused in verdict.refused[:MAX_SHOWN]]
    lines += _more(len(verdict.refused), "refusals")
    lines += [
        f"{error.client} got {error.error} for its {error.api}"
        f" {error.count:,} time{'s' if error.count > 1 else ''}"
        for error in verdict.errors[:MAX_SHOWN]
    ]
    lines += _more(len(verdict.errors), "errors")
    return [*lines, *_end_lines(verdict)]


def summary_lines(verdict: VerdictFacts) -> list[str]:
    """At most four lines: the outcome, the first finding, the last step that led to it, degraded
    partitions."""
    lines = [answer_line(verdict)]
    degraded = list(degraded_lines(verdict))[:1]
    if verdict.anomalies:
        first, more = verdict.anomalies[0], len(verdict.anomalies) - 1
        lines.append(f"{first}" + (f"; and {counted(more, 'more anomaly')}" if more else ""))
        links = [f"{x.at_ms - verdict.began_ms:+} ms {x.text}" for x in first.chain[-2:]]
        return [*lines, f"because: {'; '.join(links)}"] if links else lines
    if verdict.violations:
        return [*lines, violation_line(verdict, verdict.violations[0])]
    return [*lines, *degraded, _counts_line(verdict), *_not_judged(verdict)]


def answer_line(verdict: VerdictFacts) -> str:
    """The answer in a line: `valid: no anomaly, and every invariant held`."""
    return f"{verdict.outcome}: {reason_text(verdict)}"


def _end_lines(verdict: VerdictFacts) -> Iterator[str]:
    yield from _not_judged(verdict)
    if verdict.merged:
        yield (
            f"of the first {verdict.merged:,} records, until"
            f" {verdict.merged_before_ms - verdict.began_ms:+} ms, it was judged only whether they"
            " are in the log"
        )
    if verdict.dropped_events:
        yield f"the oldest {verdict.dropped_events:,} events are no longer kept"
    yield _counts_line(verdict)
    yield answer_line(verdict)


def _counts_line(verdict: VerdictFacts) -> str:
    again = f" (and {counted(verdict.read_again, 'read')} again)" if verdict.read_again else ""
    return (
        f"sent {verdict.sent:,}  acked {verdict.acked:,}  failed {verdict.failed:,}"
        f"  unknown {verdict.unknown:,}  read {verdict.read:,}{again}"
    )


def _not_judged(verdict: VerdictFacts) -> list[str]:
    return [NOT_JUDGED] if verdict.has_outside_readers else []


# ---------------------------------------------------------------------------- degraded, outages


def degraded_lines(verdict: VerdictFacts) -> Iterator[str]:
    """Partitions that were offline, elected uncleanly, or below min.insync.replicas: one line for
    all partitions with equal facts."""
    ends = {
        (each.partition, each.to_ms) for each in verdict.degraded if each.then_unclean
    }  # the line about the time offline has these
    spells = [
        each
        for each in verdict.degraded
        if each.kind is not DegradedKind.UNCLEAN_ELECTION
        or (each.partition, each.from_ms) not in ends
    ]
    for group in _grouped(spells, _story):
        first = group[0]
        head = f"{_KINDS[first.kind]}: {_partitions(verdict, [each.partition for each in group])}"
        if first.kind is DegradedKind.UNCLEAN_ELECTION:
            head += f" at {moment_text(min(x.from_ms for x in group) - verdict.began_ms)}"
        else:
            head += f" {_for(verdict, group)}"
        yield head + _why(verdict, first)


def _story(spell: Degraded) -> Hashable:
    """The facts of a degraded time that different partitions must have in common to share a
    line."""
    others = tuple(each for each in spell.ineligible if _adds(spell, each))
    return (spell.kind, spell.origin, spell.is_over, spell.then_unclean, others)


def _why(verdict: VerdictFacts, spell: Degraded) -> str:
    """The reason in a degraded line: `: rack b lost power at +35 s, broker 4 was down since +32 s;
    then elected uncleanly`."""
    why = [] if spell.origin is None else [origin_text(spell.origin, verdict.began_ms)]
    why += [_ineligible_text(verdict, each) for each in spell.ineligible if _adds(spell, each)]
    text = f": {', '.join(why)}" if why else ""
    return f"{text}; then elected uncleanly" if spell.then_unclean else text


def _adds(spell: Degraded, one: Ineligible) -> bool:
    """Whether a replica's state adds anything to the origin, which may imply it."""
    return spell.origin is None or one.broker not in spell.origin.nodes


def _ineligible_text(verdict: VerdictFacts, one: Ineligible) -> str:
    since = f" since {moment_text(one.since_ms - verdict.began_ms)}" if one.since_ms >= 0 else ""
    return f"broker {one.broker} {_STATES[one.state]}{since}"


def outage_lines(verdict: VerdictFacts) -> Iterator[str]:
    """The outages: one line for the windows of one kind that have one origin, such as `no writes to
    5 of 12 partitions of orders for up to 8.7 s: rack b lost power at +35 s; noticed at +43 s`."""
    groups = _grouped(verdict.windows, _window_story)
    groups.sort(key=lambda group: (min(each.from_ms for each in group), group[0].kind != WRITES))
    for group in groups:
        first = group[0]
        to = "to" if first.kind == WRITES else "of"
        where = _partitions(verdict, [each.partition for each in group])
        why = ""
        if first.origin is not None:
            why = f": {origin_text(first.origin, verdict.began_ms)}"
        elif first.reasons:
            why = f": {first.reasons[0].text}"
        yield f"no {first.kind} {to} {where} {_for(verdict, group)}{why}"


def _window_line(verdict: VerdictFacts, window: Window) -> str:
    """A window in a line: `no writes to orders-0 for 1,403 ms from +3000 ms on (p0):
    NOT_LEADER_OR_FOLLOWER`."""
    topic, number = window.partition
    to = "to" if window.kind == WRITES else "of"
    until = "" if window.is_over else ", to the end"
    errors = f": {', '.join(window.errors)}" if window.errors else ""
    return (
        f"no {window.kind} {to} {topic}-{number} for {window.duration_ms:,} ms from"
        f" {window.from_ms - verdict.began_ms:+} ms on{until} ({', '.join(window.clients)}){errors}"
    )


def _window_story(window: Window) -> Hashable:
    why = [(each.identity, type(each.fact)) for each in window.reasons[:1]]
    return (window.kind, window.origin, window.origin is None and tuple(why))


def _grouped(items: Iterable[T], story: Callable[[T], Hashable]) -> list[list[T]]:
    """The items, grouped by equal stories, in the order of each group's first item."""
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(story(item), []).append(item)
    return list(groups.values())


def _for(verdict: VerdictFacts, group: Sequence[Window | Degraded]) -> str:
    """The duration in an outage's line: `for up to 8.7 s`, `for 52 s from +43 s`, `to the end`."""
    longest_ms = max(each.duration_ms for each in group)
    partitions = {each.partition for each in group}
    upto = "up to " if len(group) > 1 and min(x.duration_ms for x in group) < longest_ms else ""
    times = f" ({len(group)} times)" if len(group) > len(partitions) == 1 else ""
    first_ms, origin = min(each.from_ms for each in group), group[0].origin
    since = f" from {moment_text(first_ms - verdict.began_ms)} on"
    if origin is not None and first_ms == origin.at_ms:
        since = ""  # the moment of the origin follows
    end = "" if all(each.is_over for each in group) else ", to the end"
    return f"for {upto}{duration_text(longest_ms)}{since}{end}{times}"


def _partitions(verdict: VerdictFacts, partitions: Iterable[Partition]) -> str:
    """The partitions in a line: `audit-0, audit-3`, or `6 of 12 partitions of orders and all 3 of
    audit`."""
    different = sorted(set(partitions))
    if len(different) <= MAX_NAMED:
        return ", ".join(f"{topic}-{number}" for topic, number in different)
    by_topic: dict[str, int] = {}
    for topic, _ in different:
        by_topic[topic] = by_topic.get(topic, 0) + 1
    parts: list[str] = []
    for topic, count in by_topic.items():
        total = max(verdict.partition_counts.get(topic, count), count)
        some = f"all {total}" if count == total else f"{count} of {total}"
        parts.append(f"{some} {'' if parts else 'partitions '}of {topic}")
    if len(parts) > MAX_NAMED:
        return f"{len(different):,} partitions of {len(parts)} topics"
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def origin_text(origin: Origin, began_ms: int) -> str:
    """The origin in words: `rack b lost power at +35 s; noticed at +43 s`."""
    nodes = origin.nodes
    who = f"rack {origin.rack}" if origin.rack else _brokers(nodes) if nodes else "the network"
    done = _DONE[origin.kind].format(
        who,
        its="its" if origin.rack or len(nodes) == 1 else "their",
        of=f" of {who}" if nodes else "",
        at=f" at {who}" if nodes else "",
    )
    text = f"{done} at {moment_text(origin.at_ms - began_ms)}"
    if origin.noticed_ms <= origin.at_ms:
        return text
    return f"{text}; noticed at {moment_text(origin.noticed_ms - began_ms)}"


def _brokers(ids: Sequence[int]) -> str:
    return f"broker{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"


def duration_text(duration_ms: int) -> str:
    """A duration in words: `845 ms`, `8.7 s`, `52 s`."""
    if duration_ms < 1_000:
        return f"{duration_ms} ms"
    return f"{duration_ms / 1000:.1f}".removesuffix(".0") + " s"


def moment_text(after_ms: int) -> str:
    """A moment in words, since the run began: `+500 ms`, `+35 s`, `+32.25 s`."""
    if abs(after_ms) < 1_000:
        return f"{after_ms:+} ms"
    return f"{after_ms / 1000:+.3f}".rstrip("0").rstrip(".") + " s"


# ------------------------------------------------------------------------------ single lines


def violation_line(verdict: VerdictFacts, broken: ExplainedViolation) -> str:
    at = f"{broken.at_ms - verdict.began_ms:+} ms"
    return f"{broken.name} at {at}: {broken.subject}: {broken.text}"


def _anomaly_line(anomaly: Anomaly) -> str:
    """The line of an anomaly with the setting that allows it; a lost write's own text names the
    acks."""
    is_in_text = anomaly.name == LostWrite.NAME and anomaly.allowed in (
        Setting.ACKS_0,
        Setting.ACKS_1,
    )
    allowed = f" ({anomaly.allowed})" if anomaly.allowed and not is_in_text else ""
    return f"{anomaly}{allowed}"


def _more_anomalies(rest: Sequence[Anomaly]) -> list[str]:
    """The line about anomalies that are not shown: `... and 12 more anomalies: 40 lost-write, 3
    duplicate`."""
    if not rest:
        return []
    return [f"... and {counted(len(rest), 'more anomaly')}: {', '.join(_counted(rest))}"]


def _errors_by_client(verdict: VerdictFacts) -> list[str]:
    """The errors of each client in a line: `errors: producer: NOT_ENOUGH_REPLICAS 6 times,
    DISCONNECTED 7 times`."""
    counts: dict[str, dict[str, int]] = {}
    for error in verdict.errors:
        own = counts.setdefault(error.client, {})
        own[error.error] = own.get(error.error, 0) + error.count
    lines = []
    for client, own in counts.items():
        named = sorted(own.items(), key=lambda entry: -entry[1])
        more = f" and {len(own) - MAX_ERRORS} others" if len(own) > MAX_ERRORS else ""
        text = ", ".join(f"{name} {count:,}x" for name, count in named[:MAX_ERRORS])
        lines.append(f"{client} got {text}{more}")
    return _first(lines, MAX_OUTAGES_BESIDE, "more such client")


def _unreadable_lines(verdict: VerdictFacts) -> list[str]:
    lines = []
    for one in verdict.unreadable:
        topic, number = one.partition
        line = f"cannot be read: {topic}-{number}, offsets {one.first} to {one.last}: {one.detail}"
        is_noticed = one.error != ErrorCode.NONE.name
        lines.append(f"{line}; consumers get {one.error}" if is_noticed else line)
    return lines


def _deleted_lines(verdict: VerdictFacts) -> list[str]:
    return [
        f"deleted {gone.how}: {topic}-{number}, offsets {gone.first} to {gone.last}"
        for gone in verdict.deleted
        for topic, number in (gone.partition,)
    ]


def _chain(verdict: VerdictFacts, links: Iterable[Link]) -> list[str]:
    return [f"  {link.at_ms - verdict.began_ms:>+8} ms  {link.text}" for link in links]


def _last(verdict: VerdictFacts, links: Sequence[Link], room: int) -> list[str]:
    """The last links of a chain, and a line with the number of earlier ones."""
    if len(links) <= room:
        return _chain(verdict, links)
    earlier = counted(len(links) - room + 1, "earlier step")
    return [f"  ... {earlier}", *_chain(verdict, links[len(links) - room + 1 :])]


def _first(lines: list[str], room: int, what: str) -> list[str]:
    more = len(lines) - room
    return lines if more <= 0 else [*lines[:room], f"... and {counted(more, what)}"]


def _more(count: int, what: str) -> list[str]:
    return [f"... and {count - MAX_SHOWN:,} more {what}"] if count > MAX_SHOWN else []
