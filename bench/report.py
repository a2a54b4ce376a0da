"""A session as Markdown: ratios first, then the absolute figures.

Owns: the text between two marks in benchmarks.md.  Never: changes the text around them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.figures import FIGURES, GROWTH_LIMIT, OURS, ROUNDS, SERIES, SYSTEMS, Figure
from bench.results import Found, Session

PREFACE: Final = """\
# Benchmarks

`make bench` runs kcluster and its peers on one machine in one session, one system at a time, and
writes the part between the marks. `make bench-micro` times the hot paths alone. Compare ratios
within one session, not absolute figures: those depend on the machine.
"""


def marked(text: str, mark: str, part: str) -> str:
    """`text` with the part between `<!-- mark -->` and `<!-- /mark -->` replaced.  If a mark is
    missing, both are added at the end."""
    start, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    if start not in text or end not in text:
        text = f"{text.rstrip()}\n\n{start}\n{end}\n"
    before, rest = text.split(start, 1)
    after = rest.split(end, 1)[1]
    return f"{before}{start}\n{part.strip()}\n{end}{after}"


def write(path: Path, mark: str, part: str) -> None:
    """Replace a marked part of a document; a new document starts with the preface."""
    text = path.read_text(encoding="utf-8") if path.exists() else PREFACE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(marked(text, mark, part), encoding="utf-8")


def render(session: Session) -> str:
    """All tables of a session."""
    parts = [
        heading(session),
        "## Compared with the peers\n\n" + LEGEND + ratios(session),
        "## Absolute figures\n\nMedian (minimum to maximum).\n\n" + absolutes(session),
        "## Secured\n\n" + SECURED_LEGEND + secured(session),
        "## CPU of a load\n\n" + CPU_LEGEND + cpu_of_loads(session),
        "## This cluster alone\n\nMedian (minimum to maximum).\n\n" + alone(session),
        "## Growth\n\n" + GROWTH_LEGEND + growth(session),
        "## Not measured\n\n" + missing(session),
    ]
    return "\n\n".join(part.strip() for part in parts)


KAFKA: Final = "kafka"
NOTHING: Final = "Not measured in this session."
LEGEND: Final = """\
How many times better than the peer kcluster is, also for times and memory: 2 means twice as fast,
or half the memory. The goal for the ratio is in brackets. kfake and the mock append once and do not
replicate; in kcluster and in Kafka every record is in three logs before its ack. Setup: three
brokers, replication factor 3, acks=all, six partitions (four in the mock, which creates topics only
on first use).

"""
SECURED_LEGEND: Final = """\
A listener with SASL_SSL: TLS 1.3 with a certificate of ECDSA P-256, SCRAM-SHA-512, and an
authorizer that allows the user by ACLs. Both systems have the same certificate and configs, and
have carried the same load by PLAINTEXT before, which warms the JVMs. Sessions are not resumed.
Median (minimum to maximum); in brackets behind a value the goal.

"""
CPU_LEGEND: Final = """\
The same loads by one librdkafka client. kcluster has one thread: it is the limit of a load in which
it uses one core. Elsewhere the limit is the client, or the cores that both share.

"""
GROWTH_LEGEND: Final = f"""\
CPU time of the cluster per record of 100 B, in µs, for Produce requests of 100 records (acks=all,
replication factor 3). No point may cost more than {GROWTH_LIMIT:g} times the first of its series.

"""


def heading(session: Session) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in session.machine.items())
    versions = ", ".join(
        f"{SYSTEMS.get(name, name)} {version}" for name, version in session.versions.items()
    )
    sort = f"medians of {session.runs} runs"
    if session.quick:
        sort = "a quick run, shorter and smaller than the titles say"
    return (
        f"Measured on {session.date}: {sort}, {session.mb} MB of load.\n\n"
        f"Machine: {machine}.\n\nVersions: {versions}."
    )


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table: the first column aligned left, the others right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}"


def times(ratio: float) -> str:
    """A ratio with its significant digits."""
    return f"{ratio:.0f} ×" if ratio >= 20 else f"{ratio:.1f} ×" if ratio >= 2 else f"{ratio:.2f} ×"


def cell(figure: Figure, found: Found | None) -> str:
    if found is None:
        return "–"
    middle = number(found.median, figure.digits)
    if len(found.values) == 1:
        return middle
    low, high = found.spread
    return f"{middle} ({number(low, figure.digits)} to {number(high, figure.digits)})"


def measured_systems(session: Session) -> list[str]:
    return [system for system in SYSTEMS if session.figures.get(system)]


def shared_figures(session: Session) -> list[Figure]:
    measured = {key for figures in session.figures.values() for key in figures}
    return [x for x in FIGURES if x.is_for_peers and x.key in measured]


def ratio_cell(session: Session, figure: Figure, peer: str) -> str:
    ratio, goal = session.ratio(figure, peer), figure.goals.get(peer)
    if ratio is None:
        return "–"
    if goal is None:
        return times(ratio)
    return f"{times(ratio)} (goal {goal:.2g}: {verdict(ratio >= goal)})"


def verdict(is_met: bool) -> str:
    return "met" if is_met else "not met"


def ratios(session: Session) -> str:
    peers = [system for system in measured_systems(session) if system != OURS]
    if not peers:
        return "No peer was available."
    rows = [
        [figure.title, *(ratio_cell(session, figure, peer) for peer in peers)]
        for figure in shared_figures(session)
    ]
    return table(["figure", *(f"vs {SYSTEMS[peer]}" for peer in peers)], rows)


def absolutes(session: Session) -> str:
    systems = measured_systems(session)
    rows = [
        [f"{figure.title}, {figure.unit}"]
        + [cell(figure, session.found(system, figure.key)) for system in systems]
        for figure in shared_figures(session)
    ]
    return table(["figure", *(SYSTEMS[system] for system in systems)], rows)


def alone(session: Session) -> str:
    rows = []
    for figure in FIGURES:
        found = session.found(OURS, figure.key)
        if found is None or figure.group in ("growth", "secured"):
            continue
        if figure.limit is None and figure.is_for_peers:
            continue
        goal = "–"
        if figure.limit is not None:
            bound = "at least " if figure.better == "more" else ""
            goal = f"{bound}{figure.limit:.3g}: {verdict(figure.is_met_by(found.median))}"
        rows.append([f"{figure.title}, {figure.unit}", cell(figure, found), goal])
    return table(["figure", "median", "at most"], rows) if rows else NOTHING


def secured(session: Session) -> str:
    """The figures of the secured listener, but not the CPU of the loads."""
    cpu = {key for load in ROUNDS for key in cpu_keys(load)}
    rows = []
    for figure in FIGURES:
        ours, theirs = session.found(OURS, figure.key), session.found(KAFKA, figure.key)
        if figure.group != "secured" or figure.key in cpu or not (ours or theirs):
            continue
        mine = cell(figure, ours)
        if ours is not None and figure.limit is not None:
            mine += f" (at least {figure.limit:,g}: {verdict(figure.is_met_by(ours.median))})"
        title = f"{figure.title}, {figure.unit}"
        rows.append([title, mine, cell(figure, theirs), ratio_cell(session, figure, KAFKA)])
    if not rows:
        return NOTHING
    return table(["figure", SYSTEMS[OURS], SYSTEMS[KAFKA], "ratio"], rows)


def cpu_keys(load: str) -> tuple[str, str]:
    """The figures of a load's CPU: of the servers and of the client."""
    return f"{load}_servers_ms_mb", f"{load}_client_ms_mb"


def cpu_of_loads(session: Session) -> str:
    """CPU per MB, and the cores that it keeps busy, for each load and system."""
    rows = []
    for load, title in ROUNDS.items():
        for system in (OURS, KAFKA):
            found = [session.found(system, key) for key in (load, *cpu_keys(load))]
            medians = [each.median for each in found if each is not None]
            if len(medians) < len(found):
                continue
            rate, servers, client = medians
            row = [title, SYSTEMS[system], number(rate, 0), number(servers, 2), number(client, 2)]
            rows.append([*row, *(number(cost * rate / 1e3, 2) for cost in (servers, client))])
    if not rows:
        return NOTHING
    head = ["load", "system", "MB/s", "brokers, ms per MB", "client, ms per MB"]
    return table([*head, "brokers, cores busy", "client, cores busy"], rows)


def growth(session: Session) -> str:
    rows = []
    for series, counts in SERIES.items():
        points = [(x, session.found(OURS, f"growth_{series}_{x}")) for x in counts]
        known = [(count, found.median) for count, found in points if found is not None]
        if not known:
            continue
        worst = max(cost for _, cost in known) / known[0][1]
        costs = ", ".join(f"{count:,}: {cost:.2f}" for count, cost in known)
        rows.append([series, costs, f"{worst:.2f} × ({verdict(worst <= GROWTH_LIMIT)})"])
    if not rows:
        return NOTHING
    return table(["by number of", "µs per record", "worst relative to the first"], rows)


def missing(session: Session) -> str:
    lines = [
        f"- {SYSTEMS.get(system, system)}, {what}: {reason}"
        for system, reasons in session.missing.items()
        for what, reason in reasons.items()
    ]
    return "\n".join(lines) or "Everything was measured."
