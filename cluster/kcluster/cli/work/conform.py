"""The work of `kcluster conform`: connect, ask, print, write, clean up.

Owns: the checks of its options, progress, the files, the exit code.  Never: asks a case (conform/).
Kafka: no counterpart.
"""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from kcluster import __version__
from kcluster.cli.errors import CommandError
from kcluster.cli.interrupts import INTERRUPTED
from kcluster.cli.work.command_config import read_command_config
from kcluster.cli.work.proxy_options import bootstrap_of
from kcluster.cli.writing import require_writable_file
from kcluster.config.files.problems import nearest
from kcluster.conform.cluster import ClusterFacts, NotConformable, facts_of, mechanisms_of
from kcluster.conform.findings import (
    FORMAT,
    AskedOf,
    ConformReport,
    Result,
    counted,
    grouped,
    untried_by_reason,
)
from kcluster.conform.page import page_of
from kcluster.conform.references import REFERENCES, Reference
from kcluster.conform.session import ConformSession, tasks_of
from kcluster.conform.users import users_of
from kcluster.conform.words import report_lines
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.proxy.addresses import Address
from kcluster.proxy.upstream import Upstream, UpstreamError, UpstreamSecurity

COULD_NOT: Final = 2
"""The exit code if the cluster could not be asked."""
INTERRUPTION: Final = "interrupted"
PROGRESS_EVERY_S: Final = 5.0
"""How often progress is printed where there is no terminal to overwrite a line on: times 6."""


class ConformOptions(Struct, frozen=True):
    """The command line of `kcluster conform`."""

    bootstrap: str
    against: str
    only: tuple[str, ...]
    skip: tuple[str, ...]
    all_versions: bool
    json_file: Path | None
    page: Path | None
    allow: tuple[str, ...]
    command_config: Path | None
    quiet: bool


def run_conform(options: ConformOptions) -> int:
    """Run, print and write the report; returns the exit code.  Problems go to stderr."""
    try:
        return _run(options)
    except CommandError as error:
        problem = str(error)
    except (NotConformable, UpstreamError) as error:
        problem = str(error)
    print(f"kcluster: {problem}", file=sys.stderr)
    return COULD_NOT


def _run(options: ConformOptions) -> int:
    bootstrap = bootstrap_of(options.bootstrap)
    reference = next(one for one in REFERENCES if one.version == options.against)
    only = apis_of(options.only)
    for path in (options.json_file, options.page):
        if path is not None and str(path) != "-":
            require_writable_file(str(path))
    security = UpstreamSecurity()
    if options.command_config is not None:
        security = read_command_config(options.command_config)
    upstream = Upstream(bootstrap, security, options.allow)
    _require_allowed(upstream, bootstrap)
    facts = facts_of(upstream)
    _require_allowed(upstream, facts.brokers.values())
    report = _asked(options, upstream, facts, reference, only)
    _write(options, report)
    if report.stopped:
        return INTERRUPTED if report.stopped == INTERRUPTION else COULD_NOT
    return 1 if report.differences else 0


def apis_of(names: tuple[str, ...]) -> frozenset[ApiKey]:
    """The APIs of --only, by Kafka's names; upper and lower case are the same."""
    known = {_plain(one.name): ApiKey(key) for key, one in APIS.items()}
    found = set()
    for name in (part for text in names for part in text.split(",")):
        api = known.get(_plain(name))
        if api is None:
            meant = nearest(name, [one.name for one in APIS.values()])
            hint = f"; did you mean {meant}?" if meant else ""
            raise CommandError(f"--only {name}: Kafka has no such API{hint}", 2)
        found.add(api)
    return frozenset(found)


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _require_allowed(upstream: Upstream, addresses: Iterable[Address]) -> None:
    for host, port in addresses:
        if not upstream.may_reach(host):
            raise CommandError(
                f"{host}:{port} is not this machine; topics and groups are made there: if you mean"
                f" it, add --allow {host}",
                2,
            )


def _asked(
    options: ConformOptions,
    upstream: Upstream,
    facts: ClusterFacts,
    reference: Reference,
    only: frozenset[ApiKey],
) -> ConformReport:
    """Ask everything; the report, also of a run that was interrupted."""
    began_s = time.monotonic()
    began_ms = time.time_ns() // 1_000_000
    tasks = tasks_of(reference, only, every_version=options.all_versions, without=options.skip)
    results: list[Result] = []
    progress = ConformProgress(len(tasks))

    def done(result: Result) -> None:
        results.append(result)
        progress.show(results)

    users = users_of(
        mechanisms_of(upstream) if upstream.logs_in else None,
        facts.versions,
        secrets.token_hex(16),
        has_authorizer=facts.has_authorizer,
    )
    session = ConformSession(upstream, facts, reference, secrets.token_hex(3), done, users)
    stopped = ""
    try:
        session.run(tasks)
    except KeyboardInterrupt:
        stopped = INTERRUPTION
    except NotConformable as problem:
        if not results:
            raise
        stopped = str(problem)
    finally:
        progress.clear("cleaning up")
        left = session.clean_up()
        progress.clear("")
        if left:
            print(f"kcluster: left behind: {', '.join(left)}", file=sys.stderr)
    apis = counted(results, _listed(facts))
    return ConformReport(
        format=FORMAT,
        kcluster=__version__,
        against=reference.version,
        bootstrap=options.bootstrap,
        began_ms=began_ms,
        took_s=round(time.monotonic() - began_s, 1),
        cluster=AskedOf(facts.cluster_id, tuple(sorted(facts.brokers)), dict(facts.features)),
        same=sum(one.same for one in results),
        different=sum(one.different for one in apis),
        untried=sum(one.untried for one in results),
        stopped=stopped,
        apis=apis,
        differences=grouped(results),
        not_tried=untried_by_reason(results),
        left_behind=tuple(left),
    )


def _listed(facts: ClusterFacts) -> dict[str, str]:
    """API name -> the versions that the cluster lists."""
    return {
        APIS[key].name: f"{low}-{high}"
        for key, (low, high) in facts.versions.items()
        if key in APIS
    }


def _write(options: ConformOptions, report: ConformReport) -> None:
    """Print the report, and write its files."""
    if str(options.json_file) == "-":
        print(msgspec.json.encode(report).decode())
    else:
        lines = list(report_lines(report))
        print("\n".join(lines[-1:] if options.quiet else lines))
        if options.json_file is not None:
            options.json_file.write_bytes(msgspec.json.encode(report) + b"\n")
    if options.page is not None:
        options.page.write_text(page_of(report), "utf-8")


class ConformProgress:
    """A line on stderr: on a terminal it is overwritten, elsewhere printed now and then."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._is_terminal = sys.stderr.isatty()
        self._every_s = 0.2 if self._is_terminal else PROGRESS_EVERY_S * 6
        self._shown_s = time.monotonic()

    def show(self, results: list[Result]) -> None:
        """Show how far the run is."""
        now_s = time.monotonic()
        if now_s - self._shown_s < self._every_s:
            return
        self._shown_s = now_s
        different = sum(1 for one in results if one.deviations)
        text = f"{len(results):,} of {self._total:,} cases done, {different:,} with a difference"
        self._put(text)

    def clear(self, text: str) -> None:
        """Show another text; "" clears the line."""
        if self._is_terminal or text:
            self._put(text)

    def _put(self, text: str) -> None:
        end = "" if self._is_terminal else "\n"
        start = "\r\x1b[K" if self._is_terminal else ""
        print(f"{start}{text}", end=end, file=sys.stderr, flush=True)
