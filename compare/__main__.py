"""`make compare`: sends the same requests to Apache Kafka and to this cluster, reports differences.

Owns: the command line, the order, what is printed.  Never: sends requests itself (running.py).
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import sys
import time
from collections.abc import Iterator, Sequence

from compare import what_changed
from compare.checking import CONVERSATIONS, check, check_conversation, record, record_conversation
from compare.differences import DOCUMENT, Difference, document, unused_reasons
from compare.in_memory import our_system
from compare.secured import own_secured_kafka
from compare.systems import OverTcp, own_kafka
from kcluster.conform.case import Case, Conversation
from kcluster.conform.cases import families, is_secured
from kcluster.conform.conversations import conversations
from kcluster.conform.recorded import Outcomes, Recordings
from kcluster.conform.references import NEWEST, REFERENCES, Reference
from kcluster.conform.running import CaseRunner


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser("python -m compare", description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--kafka",
        choices=[one.version for one in REFERENCES],
        default=NEWEST.version,
        help=f"the release to ask; by default {NEWEST.version}",
    )
    parser.add_argument("--bootstrap", help="three addresses of a running Kafka cluster of it")
    parser.add_argument("--only", default="*", help="globs: 'fetch: *|produce: acks*'")
    parser.add_argument(
        "--missing", action="store_true", help="ask only what has no recorded response yet"
    )
    parser.add_argument(
        "--recorded", action="store_true", help="compare with the recorded responses of Kafka"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """0 if every difference is explained."""
    options = options_of(arguments)
    if not options.recorded and not options.bootstrap and (missing := missing_requirement()):
        print(f"make compare: {missing}", file=sys.stderr)
        return 2
    began_s = time.monotonic()
    recordings = Recordings()
    if not options.recorded:
        record_all(recordings, options)
    found: list[Difference] = []
    counts = []
    for reference in REFERENCES:
        differ, cases, answers = compare_all(recordings, reference, options.only)
        found += differ
        counts.append(
            f"{answers:,} responses of {cases:,} cases and conversations were compared with"
            f" those of {reference.version}."
        )
    unexplained = sum(one.reason is None for one in found)
    for one in found:
        if one.reason is None:
            print(f"DIFFERS {one}")
    if options.only == "*":
        DOCUMENT.write_text(document(found, counts), "utf-8")
        for reason in unused_reasons(found):
            print(f"UNUSED reason: {reason.text}")
            unexplained += 1
        unexplained += write_changes(recordings)
    print(
        f"{' '.join(counts)} {len(found)} values differ, {unexplained} of them unexplained;"
        f" {time.monotonic() - began_s:.0f} s"
    )
    return 1 if unexplained else 0


def write_changes(recordings: Recordings) -> int:
    """Write the page of what changed; how many changes or their words lack the other."""
    answers = what_changed.Answers(recordings)
    what_changed.DOCUMENT.write_text(what_changed.document(answers), "utf-8")
    unexplained = [one for one in answers.changed() if one.change is None]
    unused = what_changed.unused_changes(answers.changed())
    for one in unexplained:
        print(f"CHANGED {one}")
    for change in unused:
        print(f"UNUSED change: {change.text}")
    return len(unexplained) + len(unused)


def reference_of(options: argparse.Namespace) -> Reference:
    """The release to ask."""
    return next(one for one in REFERENCES if one.version == options.kafka)


def missing_requirement() -> str:
    """Why no real cluster can be started; "" if one can."""
    from bench.systems import Kafka

    return Kafka().missing_requirement()


@contextlib.contextmanager
def real_cluster(options: argparse.Namespace, secured: bool) -> Iterator[OverTcp]:
    """The running cluster of `--bootstrap`, or one started for this run."""
    if options.bootstrap:
        system = OverTcp(options.bootstrap)
        try:
            yield system
        finally:
            for broker in system.addresses:
                system.close_all(broker)
        return
    started = own_secured_kafka if secured else own_kafka
    with started(reference_of(options)) as system:
        yield system


def record_all(recordings: Recordings, options: argparse.Namespace) -> None:
    """Record the selected cases on real clusters; the others keep their recorded responses."""
    reference = reference_of(options)
    for secured in (False, True):
        wanted = wanted_cases(recordings, options, secured)
        talks = wanted_talks(recordings, options, secured)
        if not (wanted or talks) or (secured and options.bootstrap):
            continue
        with real_cluster(options, secured) as system:
            runner = CaseRunner(system, f"cmp{int(time.time() * 1000) % 10**10}", reference)
            for family, cases in wanted.items():
                record_family(runner, recordings, family, cases)
            known = known_outcomes(recordings, CONVERSATIONS, reference)
            for name, steps in talks.items():
                print(f"conversation: {name}", flush=True)
                new = {name: record_conversation(runner, steps, known.get(name, {}))}
                merge(recordings, CONVERSATIONS, reference, new, list(conversations()))


def wanted_cases(
    recordings: Recordings, options: argparse.Namespace, secured: bool
) -> dict[str, list[Case]]:
    """The selected cases of the plain families or of the secured ones."""
    reference = reference_of(options)
    found = {
        family: [
            one
            for one in cases
            if is_wanted(f"{family}: {one.name}", options.only)
            and not (options.missing and is_complete(recordings, family, one, reference))
        ]
        for family, cases in families(reference).items()
        if is_secured(family) == secured
    }
    return {family: cases for family, cases in found.items() if cases}


def wanted_talks(
    recordings: Recordings, options: argparse.Namespace, secured: bool
) -> dict[str, Conversation]:
    """The selected conversations.  Those that kill brokers come last: transactions show their
    coordinator's epoch."""
    recorded = recordings.load(CONVERSATIONS, reference_of(options))
    talks = sorted(conversations().items(), key=lambda item: item[1].needs_operations)
    return {
        name: one
        for name, one in talks
        if one.is_secured == secured
        and is_wanted(f"conversation: {name}", options.only)
        and not (options.missing and name in recorded)
        and not (options.bootstrap and one.needs_operations)
    }


def record_family(
    runner: CaseRunner, recordings: Recordings, family: str, wanted: Sequence[Case]
) -> None:
    """Record these cases of a family."""
    reference = runner.reference
    known = known_outcomes(recordings, family, reference)
    began_s = time.monotonic()
    new = {one.name: record(runner, one, known.get(one.name, {})) for one in wanted}
    merge(recordings, family, reference, new, [one.name for one in families(reference)[family]])
    print(f"{family}: {len(wanted)} cases, {time.monotonic() - began_s:.1f} s", flush=True)


def known_outcomes(recordings: Recordings, family: str, reference: Reference) -> Outcomes:
    """What this release answered before, or else another one."""
    known: Outcomes = {}
    for one in (*REFERENCES, reference):
        for name, by_version in recordings.load(family, one).items():
            known[name] = known.get(name, {}) | by_version
    return known


def is_complete(recordings: Recordings, family: str, case: Case, reference: Reference) -> bool:
    """Whether every version of a case has a recorded outcome."""
    found = recordings.load(family, reference).get(case.name, {})
    return found.keys() >= {*case.each_version(reference)}


def merge(
    recordings: Recordings, family: str, reference: Reference, new: Outcomes, names: Sequence[str]
) -> None:
    """Save new outcomes beside the recorded ones of the other cases, in the order of `names`."""
    known = recordings.load(family, reference) | new
    recordings.save(family, reference, {name: known[name] for name in names if name in known})


def is_wanted(name: str, only: str) -> bool:
    """Whether one of the globs in `only` matches."""
    return any(fnmatch.fnmatchcase(name, glob) for glob in only.split("|"))


def compare_all(
    recordings: Recordings, reference: Reference, only: str
) -> tuple[list[Difference], int, int]:
    """Run everything on ours; (differences, number of cases, number of responses)."""
    found: list[Difference] = []
    cases = answers = 0
    for family, in_family in families(reference).items():
        wanted = [one for one in in_family if is_wanted(f"{family}: {one.name}", only)]
        if not wanted:
            continue
        runner = CaseRunner(our_system(reference, is_secured(family)), "cmp", reference)
        outcomes = recordings.load(family, reference)
        for case in wanted:
            cases += 1
            answers += len(case.each_version(reference))
            found += check(runner, family, case, outcomes)
    outcomes = recordings.load(CONVERSATIONS, reference)
    for name, conversation in conversations().items():
        if is_wanted(f"conversation: {name}", only):
            cases += 1
            answers += len(conversation.steps)
            system = our_system(reference, conversation.is_secured)
            runner = CaseRunner(system, "cmp", reference)
            found += check_conversation(runner, conversation, outcomes)
    return found, cases, answers


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
