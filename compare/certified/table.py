"""What Apache Kafka and simulated brokers did with the same scenarios, side by side.

Owns: which outcomes and windows count as equal, the page `docs/reference/certified.md`, the key
`certified` of the incidents' files.  Never: plays a scenario.  Kafka: no counterpart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Final

from msgspec import Struct

from compare.certified.played import INCIDENT_TIMES, RANDOM_TIMES, Ground, Record, refusals
from compare.certified.reasons import DIFFERENCES, RANDOM_DIFFERENCES
from compare.certified.schedules import settings_name
from kcluster.config.files.fields import duration_text
from kcluster.scenario.language.certified import Certified
from kcluster.scenario.language.scenario import Scenario

FACTOR: Final = 2
START_MS: Final = 8_000
"""A window of real brokers may be longer by this: their JVMs start and load their logs, for which
simulated brokers take no time, and the machine was busy."""
NO_REASON: Final = "not explained yet"
WINDOWS: Final = ("detection_ms", "election_ms", "writes_ms")


class Side(Struct, frozen=True):
    """The runs of one scenario on one ground."""

    records: tuple[Record, ...]

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The different outcomes of the runs, such as `invalid: lost-write`."""
        found = {outcome_text(record) for record in self.records}
        return tuple(sorted(found))

    @property
    def failures(self) -> tuple[str, ...]:
        """What was not as the file's checks say, in any run."""
        found = [text for record in self.records for text in (*record.failures, record.crash)]
        return tuple(dict.fromkeys(filter(None, found)))

    def window_ms(self, name: str) -> int | None:
        """The median of a window of WINDOWS; None if no run had it."""
        found = [getattr(record.windows, name) for record in self.records]
        known = [each for each in found if each is not None]
        return int(median(known)) if known else None


class Row(Struct, frozen=True):
    """One scenario on both grounds, in the same times."""

    name: str
    ours: Side
    kafka: Side

    @property
    def is_equal(self) -> bool:
        """Whether each run on both grounds was as the file's checks say."""
        return not self.ours.failures and not self.kafka.failures

    def ratio(self, name: str) -> float | None:
        """Kafka's window by ours; None if either has none."""
        ours, kafka = self.ours.window_ms(name), self.kafka.window_ms(name)
        return None if not ours or not kafka else kafka / ours

    def is_within(self, name: str) -> bool:
        """Whether two windows are within FACTOR, or START_MS, of each other; an election also if
        one side has none: whether a fault meets a leader may be up to chance."""
        ours, kafka = self.ours.window_ms(name), self.kafka.window_ms(name)
        if name == "election_ms" and None in (ours, kafka):
            return True
        ours, kafka = ours or 0, kafka or 0
        return ours <= FACTOR * kafka + START_MS and kafka <= FACTOR * ours + START_MS


def outcome_text(record: Record) -> str:
    """The outcome of a run, with the names of its anomalies."""
    if record.crash or record.refused:
        return record.crash or record.refused
    return ": ".join(filter(None, (record.outcome, ", ".join(record.anomalies))))


def rows_of(records: Iterable[Record], times: str) -> list[Row]:
    """The scenarios that were played on both grounds, by name."""
    sides: dict[str, dict[Ground, list[Record]]] = {}
    for record in records:
        if record.times == times:
            sides.setdefault(record.scenario, {}).setdefault(record.ground, []).append(record)
    return [
        Row(name, Side(tuple(found[Ground.SIMULATED])), Side(tuple(found[Ground.KAFKA])))
        for name, found in sorted(sides.items())
        if len(found) == len(Ground)
    ]


def certified_of(row: Row) -> Certified | None:
    """The key for the scenario's file; None if Kafka's runs were not as it says."""
    if row.kafka.failures:
        return None
    newest = row.kafka.records[-1]
    names = {name for record in row.kafka.records for name in record.anomalies}
    return Certified(
        kafka=newest.version,
        date=max(record.date for record in row.kafka.records),
        runs=len(row.kafka.records),
        outcome=newest.outcome,
        times=newest.times,
        anomalies=tuple(sorted(names)),
        detection_ms=row.kafka.window_ms("detection_ms"),
        election_ms=row.kafka.window_ms("election_ms"),
        writes_unavailable_ms=row.kafka.window_ms("writes_ms") or None,
    )


def key_lines(found: Certified) -> str:
    """The key in a file, in two lines."""
    values: list[tuple[str, str]] = [
        ("kafka", found.kafka),
        ("times", found.times),
        ("date", found.date),
        ("runs", str(found.runs)),
        ("outcome", found.outcome),
    ]
    seen: list[tuple[str, str]] = []
    if found.anomalies:
        seen.append(("anomalies", f"[{', '.join(found.anomalies)}]"))
    windows = {
        "detection": found.detection_ms,
        "election": found.election_ms,
        "writes_unavailable": found.writes_unavailable_ms,
    }
    seen += [(name, duration_text(ms)) for name, ms in windows.items() if ms is not None]
    lines = [", ".join(f"{name}: {text}" for name, text in part) for part in (values, seen) if part]
    return "certified: {" + ",\n  ".join(lines) + "}\n"


_KEY: Final = re.compile(r"^certified: \{.*?\}\n", re.MULTILINE | re.DOTALL)


def with_key(text: str, found: Certified | None) -> str:
    """The text of a scenario's file with this key, at its end, instead of an older one."""
    return _KEY.sub("", text) + ("" if found is None else key_lines(found))


# -------------------------------------------------------------------------------------- the page

HEAD: Final = """\
# Certified on Apache Kafka

<!-- Generated by `make certify`; edit compare/certified, not this page. -->

Each [incident](incidents.md) is played on Apache Kafka and on simulated brokers with the same
times. A cell `1.0 s / 1.2 s` has our time, then Kafka's, each the median of the runs.

- An outcome is *equal* if every run on both grounds was as the checks of the file say.
- *Detection* lasts from the first fault until the controller fenced its broker, *election* until
  the next leader, *no writes* as long as the worst partition could not be written. The ratio is
  Kafka's time without writes by ours.
- Two windows are equal if neither is longer than {factor} times the other, plus {start}: Kafka's
  JVMs start in seconds, simulated brokers at once. Of an election, a side may have none (`-`):
  whether a fault met a leader was up to chance.

`make certify` plays what has no record yet, with Kafka's own times: three runs of each incident
take three hours on two cores. The records are in `compare/certified/incidents.jsonl`, and each file
has its result as the key `certified`.
"""


def page(
    records: Sequence[Record], drawn: Sequence[Record], scenarios: Mapping[str, Scenario]
) -> str:
    """The page, of the incidents' records and those of random schedules."""
    refused = [
        f"| {name} | {'; '.join(reasons)} |"
        for name, scenario in sorted(scenarios.items())
        if (reasons := refusals(scenario))
    ]
    blocks = [
        HEAD.format(factor=FACTOR, start=duration_text(START_MS)),
        _section(rows_of(records, INCIDENT_TIMES)),
        "## Not possible on a real Kafka\n",
        *_head("incident", "reason"),
        *refused,
        *_random_section(rows_of(drawn, RANDOM_TIMES)),
    ]
    return "\n".join([*blocks, ""])


def _section(rows: Sequence[Row]) -> str:
    kafka = [record for row in rows for record in row.kafka.records]
    loads = [record.load for record in kafka]
    versions = ", ".join(sorted({record.version for record in kafka if record.version}))
    equal = sum(row.is_equal for row in rows)
    within = sum(all(map(row.is_within, WINDOWS)) for row in rows)
    tries = sum(record.tries - 1 for record in kafka)
    head = ("incident", "runs", "outcome", "equal", "detection", "election", "no writes", "ratio")
    return "\n".join(
        [
            "## With Kafka's defaults (a broker's session is 9 s)\n",
            f"Apache Kafka {versions} played {len(rows)} incidents in {len(kafka)} runs.",
            f"{equal} outcomes are equal, and the windows of {within} incidents. The load average",
            f"of the machine, which has two cores, was {min(loads):g} to {max(loads):g} then.",
            f"Runs on Kafka that were repeated because the machine was busy: {tries}.\n",
            *_head(*head),
            *map(_line, rows),
            "",
            *_differences(rows),
        ]
    )


def _line(row: Row) -> str:
    ratio = row.ratio("writes_ms")
    cells = [
        row.name,
        f"{len(row.ours.records)} / {len(row.kafka.records)}",
        " / ".join(dict.fromkeys((*row.ours.outcomes, *row.kafka.outcomes))),
        "yes" if row.is_equal else "**no**",
        *(_windows(row, name) for name in WINDOWS),
        "" if ratio is None else f"{ratio:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def _windows(row: Row, name: str) -> str:
    sides = [row.ours.window_ms(name), row.kafka.window_ms(name)]
    if not any(sides):
        return ""
    shown = " / ".join("-" if ms is None else f"{ms / 1000:.1f} s" for ms in sides)
    return shown if row.is_within(name) else f"**{shown}**"


def _head(*names: str) -> list[str]:
    return [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]


def _differences(rows: Sequence[Row]) -> Iterator[str]:
    """What differs, with its reason."""
    found = [row for row in rows if has_difference(row)]
    if not found:
        return
    yield "### Differences\n"
    for row in found:
        reason = DIFFERENCES.get(row.name, NO_REASON)
        seen = "".join(f" Seen: {x}." for x in (*row.ours.failures, *row.kafka.failures))
        yield f"- **{row.name}**: {reason}.{seen}"
    yield ""


def has_difference(row: Row) -> bool:
    """Whether an outcome or a window differs."""
    return not row.is_equal or not all(map(row.is_within, WINDOWS))


def _random_section(rows: Sequence[Row]) -> Iterator[str]:
    """The section about random schedules."""
    if not rows:
        return
    differing = [row for row in rows if not is_found_by_ours(row)]
    known = anomalies_of_ours(rows)
    elsewhere = [row for row in differing if anomalies(row.kafka) <= known[settings_of(row)]]
    found, seen = len(rows) - len(differing), len(elsewhere)
    yield "\n## Random schedules\n"
    yield f"{len(rows)} drawn schedules of a minute, with kills, pauses, restarts, cuts and moves"
    yield "under safe and unsafe settings, were played on Kafka once, and on simulated brokers with"
    yield "several seeds: what an unsafe setting loses is a matter of milliseconds. The share of"
    yield "the runs that had an anomaly, by the settings:\n"
    yield from _head("settings", "runs on Kafka", "ours", "anomaly", "Kafka", "ours")
    for name in sorted(known):
        yield from _shares(name, [row for row in rows if settings_of(row) == name])
    yield ""
    yield f"Kafka's outcome was one of ours in {found} schedules. In {seen} others, ours had each"
    yield "of its anomalies under the same settings, in other schedules. The rest:\n"
    for row in differing:
        if row not in elsewhere:
            ours, kafka = " or ".join(row.ours.outcomes), " or ".join(row.kafka.outcomes)
            reason = RANDOM_DIFFERENCES.get(settings_of(row), NO_REASON)
            yield f"- **{row.name}** ({settings_of(row)}): Kafka {kafka}, ours {ours}: {reason}."


def _shares(settings: str, rows: Sequence[Row]) -> Iterator[str]:
    """The lines of the table about some settings."""
    sides = [
        [record for row in rows for record in row.kafka.records],
        [record for row in rows for record in row.ours.records],
    ]
    counts = [Counter(name for record in side for name in record.anomalies) for side in sides]
    start = f"| {settings} | {len(sides[0])} | {len(sides[1])} |"
    for name in sorted(counts[0] | counts[1]) or ["none"]:
        shares = [
            f"{100 * count[name] // len(side)} %" if name in counts[0] | counts[1] else ""
            for count, side in zip(counts, sides, strict=True)
        ]
        yield f"{start} {name} | {' | '.join(shares)} |"
        start = "| | | |"


def settings_of(row: Row) -> str:
    """The settings of a random schedule."""
    return settings_name(int(row.name.removeprefix("random_")))


def anomalies(side: Side) -> set[str]:
    """The anomalies of any run."""
    return {name for record in side.records for name in record.anomalies}


def anomalies_of_ours(rows: Iterable[Row]) -> dict[str, set[str]]:
    """The anomalies of simulated brokers in any schedule, by its settings."""
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(settings_of(row), set()).update(anomalies(row.ours))
    return found


def is_found_by_ours(row: Row) -> bool:
    """Whether simulated brokers had Kafka's outcome with one of their seeds."""
    return set(row.kafka.outcomes) <= set(row.ours.outcomes)
