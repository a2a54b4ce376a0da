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

from compare import recorded
from compare.cases import families
from compare.checking import check, check_conversation, record, record_conversation
from compare.conversations import conversations
from compare.differences import DOCUMENT, Difference, document, unused_reasons
from compare.running import Runner
from compare.systems import OverTcp, own_kafka
from compare.virtual import Virtual


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser("python -m compare", description=__doc__.split("\n\n")[0])
    parser.add_argument("--bootstrap", help="three addresses of a running Kafka cluster")
    parser.add_argument("--only", default="*", help="globs: 'fetch: *|produce: acks*'")
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
    if not options.recorded:
        with real_cluster(options) as system:
            record_all(system, options)
    found, cases, answers = compare_all(options.only)
    unexplained = [one for one in found if one.reason is None]
    for one in unexplained:
        print(f"DIFFERS {one}")
    counts = f"{answers:,} responses of {cases:,} cases and conversations were compared."
    if options.only == "*":
        DOCUMENT.write_text(document(found, counts), "utf-8")
        for reason in unused_reasons(found):
            print(f"UNUSED reason: {reason.text}")
            unexplained.append(found[0])
    print(
        f"{counts} {len(found)} values differ, {len(unexplained)} of them unexplained;"
        f" {time.monotonic() - began_s:.0f} s"
    )
    return 1 if unexplained else 0


def missing_requirement() -> str:
    """Why no real cluster can be started; "" if one can."""
    from bench.systems import Kafka

    return Kafka().missing_requirement()


@contextlib.contextmanager
def real_cluster(options: argparse.Namespace) -> Iterator[OverTcp]:
    """The running cluster of `--bootstrap`, or one started for this run."""
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
    """Record the selected cases on the real cluster; the others keep their recorded responses."""
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
        is_possible = not wanted_steps.needs_operations or not options.bootstrap
        if is_possible and is_wanted(f"conversation: {name}", options.only):
            print(f"conversation: {name}", flush=True)
            record_conversation(runner, wanted_steps)


def is_wanted(name: str, only: str) -> bool:
    """Whether one of the globs in `only` matches."""
    return any(fnmatch.fnmatchcase(name, glob) for glob in only.split("|"))


def compare_all(only: str) -> tuple[list[Difference], int, int]:
    """Run everything on ours; (differences, number of cases, number of responses)."""
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
