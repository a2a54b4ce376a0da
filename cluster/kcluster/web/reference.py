"""The reference page of the HTTP API, from the table of routes and the table of metrics.

Owns: this page's text.  Never: writes it (tools/reference_pages.py does).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from kcluster.json_types import JsonObject
from kcluster.web.api import load_all
from kcluster.web.api.openapi import is_struct, parameters, path_of
from kcluster.web.limits import WebLimits
from kcluster.web.metrics.names import METRICS
from kcluster.web.problems import ProblemDocument
from kcluster.web.routes import ROUTES, Route

INTRO: Final = """
`kcluster serve` answers these requests. Each `kcluster up` answers them too, for its cluster: on
the unix socket that the verbs of the command line use, and with `--page` on a port.
`GET /openapi.json` has the same as OpenAPI 3.1. How to use it from a test:
[HTTP API](../how-to/http-api.md).

Every request but `GET /openapi.json` carries the token: `Authorization: Bearer TOKEN`, or the
parameter `token` where a header cannot be set, as by a browser's EventSource. Bodies are JSON;
some are YAML, too (`Content-Type: application/yaml`). `Host` must be localhost, an address of the
machine, or a name given by `serve --allow-host`.

The unix socket is `$XDG_RUNTIME_DIR/kcluster/NAME.sock`, or `/tmp/kcluster-UID/NAME.sock` without
that variable, and the cluster's id is its name:
`curl --unix-socket /tmp/kcluster-1000/lab.sock http://localhost/v1/clusters/lab`. It needs
no token and no `Host`, as only its owner can open it; such requests may write where the owner may.
`POST .../actions` with `Accept: application/x-ndjson`, and `GET .../events` with
`Accept: text/plain`, answer with the lines that the command line shows.
"""
ERRORS: Final = """
Errors are problem documents (RFC 9457, `application/problem+json`), with the same words that
files and the command line get:

| status | meaning |
|---|---|
| 400 | the request cannot be read: broken JSON with line and column, an unknown parameter |
| 401, 421 | no token or a wrong one; a `Host` that is not this server's |
| 403 | this server shows one cluster: it creates none, and writes no files |
| 404 | no such cluster, broker, partition, action or client |
| 408 | the request, or what it waits for, is not there in time: `detail` and `state` show the \
present state, `action` the action that was performed |
| 409 | the cluster cannot do this in its present state |
| 411, 413, 431 | a body without `Content-Length`; a body or a header that is too large |
| 415 | a body that is neither JSON nor YAML |
| 422 | wrong values: `problems` has each with `path`, `line`, `column` and the nearest right name |
| 503 | too many requests or connections at once; again after `Retry-After` |
"""
LIMITS: Final = """
Each phase of a request has a time and a size. What exceeds one gets the status above, as far as it
can still be answered, and its connection is closed.
"""
WHO_WAITS: Final = """
A request that waits for a cluster, such as `POST .../wait`, costs no thread, and ends when its
client closes the connection; what it has done until then stays done. Lists, states, the clock and
events are answered however many others wait; leases end all the same. Bad requests are logged on
stderr: ten lines in ten seconds, without control characters.
"""
METRICS_INTRO: Final = """
`GET /metrics` has the metrics of all clusters, `GET /v1/clusters/{id}/metrics` those of one. They
have the names that the usual rules of the JMX exporter give to the MBeans of Kafka 4.3.1, so
dashboards and alerts can be tried on them. Each sample has the labels `cluster` and `broker`:
what Prometheus reads from one process per broker comes from one here. The sample with an empty
`topic` is that of all topics.

Counts begin with the record, so not at all under `--no-record`. Internal topics are not counted.
Not there, because KRaft has it no more: `LeaderElectionRateAndTimeMs`.
"""
TRY: Final = """
Alerts as they are usually written, which hold here:

```text
sum(kafka_controller_kafkacontroller_activecontrollercount) by (cluster) != 1
sum(kafka_controller_kafkacontroller_offlinepartitionscount) by (cluster) > 0
sum(kafka_server_replicamanager_underreplicatedpartitions) by (cluster) > 0
sum(kafka_server_replicamanager_underminisrpartitioncount) by (cluster) > 0
rate(kafka_controller_controllerstats_uncleanleaderelections_total[5m]) > 0
rate(kafka_server_replicamanager_isrshrinks_total[5m]) > 0
kafka_network_requestmetrics_totaltimems{request="Produce", quantile="0.99"} > 500
```
"""
SUBJECTS: Final = {
    "clusters": "Clusters",
    "state": "Clusters as they stand",
    "actions": "Actions",
    "waiting": "Waiting",
    "events": "Events",
    "stream": "The stream",
    "replicas": "Replicas and the past",
    "evidence": "Verdict and record",
    "processed": "What was processed",
    "advertised": "Advertised addresses",
    "clock": "The clock",
    "forks": "Forks",
    "parameters": "Other values of parameters",
    "predictions": "Predictions",
    "lesson": "The lesson",
    "clients": "Clients",
    "access": "Settings of client libraries",
    "metrics": "Metrics",
    "page": "The page",
    "openapi": "This description",
}
"""The headings, in order, by module of api/."""

Table = Callable[[Iterable[str], Iterable[Iterable[str]]], list[str]]


def http_api_page(mark: str, table: Table) -> str:
    """The text of the page.  `table(heads, rows)` makes a Markdown table."""
    load_all()
    lines = ["# HTTP API", "", mark, INTRO, "## Requests", ""]
    lines += table(
        ("request", ""), ((f"[`{x.method} {path_of(x)}`](#{x.name})", x.summary) for x in ordered())
    )
    lines += ["## Errors", "", ERRORS]
    lines += fields_of(ProblemDocument, table)
    lines += ["## Limits", "", LIMITS, *table(("limit", "", ""), limit_rows()), WHO_WAITS]
    subject = ""
    for route in ordered():
        if subject_of(route) != subject:
            subject = subject_of(route)
            lines += [f"## {SUBJECTS[subject]}", ""]
        lines += section(route, table)
    lines += ["## Names of metrics", "", METRICS_INTRO]
    rows = (
        (
            f"`{x.name}{'_total' * (x.kind == 'counter')}`",
            x.kind,
            ", ".join(x.labels),
            f"{x.words} {mbean(x.mbean)}",
        )
        for x in METRICS.values()
    )
    lines += table(("metric", "type", "labels", ""), rows)
    return "\n".join([*lines, TRY])


def limit_rows() -> Iterator[tuple[str, str, str]]:
    """Each limit of a server, with its unit."""
    defaults = WebLimits()
    schema = msgspec.json.schema(WebLimits)["$defs"]["WebLimits"]["properties"]
    for name, one in schema.items():
        words, _, unit = name.rpartition("_") if name.endswith(("_s", "_bytes")) else (name, "", "")
        number = f"{getattr(defaults, name):,g}" if unit != "bytes" else size(one["default"])
        shown = f"{number} {unit}".strip() if unit != "bytes" else number
        yield words.replace("_", " "), shown, one["description"]


def size(size_bytes: int) -> str:
    """A size in words: `32 KiB`."""
    kib = size_bytes // 1024
    return f"{kib} KiB" if kib < 1024 else f"{kib // 1024} MiB"


def mbean(name: str) -> str:
    """Kafka's name of a metric, as code."""
    return f"`{name}`" if name else "Kafka has no such metric."


def subject_of(route: Route) -> str:
    """The module that has the route."""
    return route.handler.__module__.rpartition(".")[2]


def ordered() -> list[Route]:
    """The routes in the order of the headings."""
    subjects = list(SUBJECTS)
    return sorted(ROUTES, key=lambda route: subjects.index(subject_of(route)))


def section(route: Route, table: Table) -> Iterator[str]:
    """The section about one request."""
    yield from (
        f"### {route.name}",
        "",
        f"`{route.method} {path_of(route)}`",
        "",
        route.summary,
        "",
    )
    query = [x for x in parameters(route) if x["in"] == "query"]
    if query:
        rows = (
            (f"`{x['name']}`", described(x["schema"], x.get("description", ""), x["required"]))
            for x in query
        )
        yield from table(("parameter", ""), rows)
    if route.body is not None:
        if is_struct(route.body):
            yield "Body:"
            yield ""
            yield from fields_of(route.body, table)
        else:
            kind = "a client" if "clients" in route.path else "an action"
            yield f"Body: {kind} as in [scenario files](scenario-keys.md)."
            yield ""
    if is_struct(route.answer):
        words = " ".join((route.answer.__doc__ or "").split())
        yield f"Answer {route.status}: {words}"
    elif isinstance(route.answer, str):
        yield f"Answer {route.status}: `{route.answer}`."
    else:
        yield f"Answer {route.status}: JSON."
    yield ""


def fields_of(kind: Any, table: Table) -> list[str]:
    """The rows about the fields of a Struct."""
    schema = msgspec.json.schema(kind)["$defs"][kind.__name__]
    words = " ".join((kind.__doc__ or "").split())
    required = schema.get("required", ())
    rows = (
        (f"`{name}`", described(one, one.get("description", ""), name in required))
        for name, one in schema["properties"].items()
    )
    return [words, "", *table(("key", ""), rows)]


def described(schema: JsonObject, words: str, required: bool) -> str:
    """The description of a parameter or a key."""
    words = words or next(
        (x["description"] for x in schema.get("anyOf", ()) if "description" in x), ""
    )
    default = schema.get("default")
    if required:
        return f"{words} Required.".strip()
    shown = (
        f" Default: `{msgspec.json.encode(default).decode()}`."
        if default not in (None, "", [], False)
        else ""
    )
    return f"{words}{shown}".strip()
