"""`make certify`: play scenarios on Apache Kafka and on simulated brokers, and keep what was seen.

    python -m compare.certified                 every incident, three runs on each ground
    python -m compare.certified --only 'acks*' --budget 30 --jobs 6
    python -m compare.certified --random 200    random schedules instead
    python -m compare.certified --page          only the table and the files, from the records

Owns: the order, the time limits, the command line.  Never: plays a scenario in this process: a run
that hangs is killed, and its Kafka goes with it.
"""

from __future__ import annotations

import argparse
import fnmatch
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from compare.certified.played import INCIDENT_TIMES, RANDOM_TIMES, Ground, Record, play, refusals
from compare.certified.schedules import schedule
from compare.certified.table import certified_of, page, rows_of, with_key
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import BUGS

ROOT: Final = Path(__file__).resolve().parents[2]
INCIDENTS: Final = ROOT / "scenarios" / "incidents"
RECORDS: Final = Path(__file__).parent / "incidents.jsonl"
RANDOM_RECORDS: Final = Path(__file__).parent / "random.jsonl"
PAGE: Final = ROOT / "docs" / "reference" / "certified.md"
DIRECTORIES: Final = ROOT / "build" / "certified"
RUNS: Final = 3
SEEDS_OF_OURS: Final = 5
"""The seeds with which simulated brokers play a random schedule: what an unsafe setting loses is a
matter of milliseconds."""
LIMIT_S: Final = {"tenth": 400, "kafka": 1_500}
JOBS: Final = 4
"""A run waits for most of its time, and its JVMs together take a quarter of a core."""
_Run = tuple[str, Ground, int]
"""A scenario, a ground, a seed."""


def main(arguments: Sequence[str]) -> int:
    options = options_of(arguments)
    if options.child:
        print(msgspec.json.encode(_child(*options.child)).decode())
        return 0
    if not options.page:
        _play_missing(options)
    write_pages()
    return 0


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser("python -m compare.certified")
    parser.add_argument("--only", default="*", help="names of incidents, as a glob")
    parser.add_argument("--random", type=int, default=0, help="this many random schedules instead")
    parser.add_argument("--budget", type=float, default=1e9, help="minutes; then it stops")
    parser.add_argument("--runs", type=int, default=RUNS, help="runs per incident and ground")
    parser.add_argument("--jobs", type=int, default=JOBS, help="so many runs at a time")
    parser.add_argument("--again", action="store_true", help="repeat what differed on Kafka, too")
    parser.add_argument("--page", action="store_true", help="play nothing")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.times = RANDOM_TIMES if options.random else INCIDENT_TIMES
    return options


def _play_missing(options: argparse.Namespace) -> None:
    """Play what has no record yet, until the budget is used up."""
    until_s = time.monotonic() + 60 * options.budget
    file = RANDOM_RECORDS if options.random else RECORDS
    known = {x.key: x for x in read_records(file)}
    wanted = random_runs(options.random) if options.random else runs_of(options.only, options.runs)

    def another(run: _Run) -> Record | None:
        name, ground, seed = run
        earlier = known.get((name, ground, options.times, seed))
        is_known = earlier is not None and not (options.again and is_to_repeat(earlier))
        if is_known or time.monotonic() > until_s:
            return None
        record = played(name, ground, options.times, seed)
        return record if earlier is None else replace(record, tries=earlier.tries + 1)

    with ThreadPoolExecutor(options.jobs) as executor:
        for ended in as_completed([executor.submit(another, run) for run in wanted]):
            if (record := ended.result()) is not None:
                known[record.key] = record
                lines = [msgspec.json.encode(each).decode() for each in known.values()]
                file.write_text("\n".join([*lines, ""]), encoding="utf-8")
                print(line_of(record), flush=True)


def is_to_repeat(record: Record) -> bool:
    """Whether a run on Kafka was not as its file says."""
    return record.ground is Ground.KAFKA and bool(record.failures or record.crash)


def runs_of(only: str, runs: int) -> Iterator[_Run]:
    """The runs of the incidents, each incident first once."""
    names = [
        name
        for name, scenario in incidents().items()
        if fnmatch.fnmatch(name, only) and not refusals(scenario)
    ]
    for seed in range(1, runs + 1):
        for ground in (Ground.KAFKA, Ground.SIMULATED):
            yield from ((name, ground, seed) for name in names)


def random_runs(count: int) -> Iterator[_Run]:
    """The runs of random schedules: one on Kafka, several on simulated brokers."""
    for number in range(1, count + 1):
        yield f"random_{number}", Ground.KAFKA, 1
        for seed in range(1, SEEDS_OF_OURS + 1):
            yield f"random_{number}", Ground.SIMULATED, seed


def incidents() -> dict[str, Scenario]:
    """The shipped incidents, by name."""
    return {path.stem: Scenario.load(path) for path in sorted(INCIDENTS.glob("*.yaml"))}


def read_records(file: Path) -> list[Record]:
    """All records of a file, in the order of the runs."""
    if not file.exists():
        return []
    return [msgspec.json.decode(line, type=Record) for line in file.read_text().splitlines()]


def write_pages() -> None:
    """Write the page, and the key `certified` of each incident."""
    records, scenarios = read_records(RECORDS), incidents()
    text = page(records, read_records(RANDOM_RECORDS), scenarios)
    PAGE.write_text(text, encoding="utf-8")
    rows = {row.name: row for row in rows_of(records, INCIDENT_TIMES)}
    for name in scenarios:
        file = INCIDENTS / f"{name}.yaml"
        found = certified_of(rows[name]) if name in rows else None
        file.write_text(with_key(file.read_text(encoding="utf-8"), found), encoding="utf-8")


def played(name: str, ground: Ground, times: str, seed: int) -> Record:
    """Play a scenario in a process of its own."""
    command = [sys.executable, "-m", "compare.certified", "--child", name, ground, times, str(seed)]
    try:
        ended = subprocess.run(
            command, stdout=subprocess.PIPE, cwd=ROOT, timeout=LIMIT_S[times], check=False
        )
    except subprocess.TimeoutExpired:
        return Record(name, ground, "", times, seed, "", 0.0, crash="no end")
    if ended.returncode:
        crash = f"the process ended with {ended.returncode}"
        return Record(name, ground, "", times, seed, "", 0.0, crash=crash)
    return msgspec.json.decode(ended.stdout.splitlines()[-1], type=Record)


def _child(name: str, ground: str, times: str, seed: str) -> Record:
    drawn = name.removeprefix("random_")
    scenario = schedule(int(drawn)) if drawn != name else Scenario.load(INCIDENTS / f"{name}.yaml")
    try:
        return play(scenario, Ground(ground), times, int(seed), DIRECTORIES)
    except BUGS as error:
        traceback.print_exc()
        crash = f"{type(error).__name__}: {error}"
        return Record(name, Ground(ground), "", times, int(seed), "", 0.0, crash=crash)


def line_of(record: Record) -> str:
    """One line about a run."""
    found = ", ".join(f"{count} {name}" for name, count in record.anomalies.items())
    why = record.refused or record.crash or "; ".join(record.failures)
    windows = record.windows
    return (
        f"{record.scenario:36} {record.ground:10} {record.outcome:8} {found:30}"
        f" {windows.detection_ms} {windows.election_ms} {windows.writes_ms} {record.took_s} s {why}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
