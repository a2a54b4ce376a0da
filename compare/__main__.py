"""`make compare`: asks Apache Kafka and this cluster the same, and tells where they differ.

Owns: the command line, the order, what is printed.  Never: asks by itself (running.py).
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import sys
import time
from collections.abc import Iterator, Sequence

from compare import recorded
from compare.cases import families
from compare.conversations import conversations
from compare.differences import DOCUMENT, Difference, document, never_seen
from compare.running import Runner
from compare.sitting import check, check_conversation, record, record_conversation
from compare.systems import OverTcp, own_kafka
from compare.virtual import Virtual


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser("python -m compare", description=__doc__.split("\n\n")[0])
    parser.add_argument("--bootstrap", help="a real cluster that runs: three addresses")
    parser.add_argument("--only", default="*", help="globs: 'fetch: *|produce: acks*'")
    parser.add_argument("--recorded", action="store_true", help="do not ask Kafka, use its answers")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """0 if all that differs is explained."""
    options = options_of(arguments)
    if not options.recorded and not options.bootstrap and (lacks := what_lacks()):
        print(f"make compare: {lacks}", file=sys.stderr)
        return 2
    began_s = time.monotonic()
    if not options.recorded:
        with real_cluster(options) as system:
            record_all(system, options)
    found, cases, answers = compare_all(options.only)
    unexplained = [one for one in found if one.reason is None]
    for one in unexplained:
        print(f"DIFFERS {one}")
    counts = f"{answers:,} answers of {cases:,} cases and conversations were compared."
    if options.only == "*":
        DOCUMENT.write_text(document(found, counts), "utf-8")
        for reason in never_seen(found):
            print(f"NOT SEEN any more: {reason.text}")
            unexplained.append(found[0])
    print(
        f"{counts} {len(found)} values differ, {len(unexplained)} of them unexplained;"
        f" {time.monotonic() - began_s:.0f} s"
    )
    return 1 if unexplained else 0


def what_lacks() -> str:
    """Why no real cluster can be started; empty if one can."""
    from bench.systems import Kafka

    return Kafka().lacks()


@contextlib.contextmanager
def real_cluster(options: argparse.Namespace) -> Iterator[OverTcp]:
    """The one that runs, or one for this run."""
    if options.bootstrap:
        system = OverTcp(options.bootstrap)
        try:
            yield system
        finally:
            for broker in system.addresses:
                system.close_all(broker)
        return
    with own_kafka() as system:
        yield system


def record_all(system: OverTcp, options: argparse.Namespace) -> None:
    """Ask the real cluster everything that is wanted; what is not keeps its recorded answers."""
    runner = Runner(system, f"cmp{int(time.time() * 1000) % 10**10}")
    for family, cases in families().items():
        wanted = [one for one in cases if is_wanted(f"{family}: {one.name}", options.only)]
        if not wanted:
            continue
        began_s = time.monotonic()
        kept = recorded.load(family)
        new = {one.name: record(runner, one) for one in wanted}
        merged = {one.name: new.get(one.name) or kept.get(one.name, {}) for one in cases}
        recorded.save(family, {name: one for name, one in merged.items() if one})
        print(f"{family}: {len(wanted)} cases, {time.monotonic() - began_s:.1f} s", flush=True)
    for name, wanted_steps in conversations().items():
        may = not wanted_steps.needs_deeds or not options.bootstrap
        if may and is_wanted(f"conversation: {name}", options.only):
            print(f"conversation: {name}", flush=True)
            record_conversation(runner, wanted_steps)


def is_wanted(name: str, only: str) -> bool:
    """Whether one of the globs in `only` is about this."""
    return any(fnmatch.fnmatchcase(name, glob) for glob in only.split("|"))


def compare_all(only: str) -> tuple[list[Difference], int, int]:
    """Ask ours; (what differs, cases, answers)."""
    found: list[Difference] = []
    cases = answers = 0
    for family, in_family in families().items():
        runner = Runner(Virtual(), "cmp")
        kept = recorded.load(family)
        for case in in_family:
            if is_wanted(f"{family}: {case.name}", only):
                cases += 1
                answers += len(case.each_version())
                found += check(runner, family, case, kept)
    for name, conversation in conversations().items():
        if is_wanted(f"conversation: {name}", only):
            cases += 1
            answers += len(conversation.steps)
            found += check_conversation(Runner(Virtual(), "cmp"), conversation)
    return found, cases, answers


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
