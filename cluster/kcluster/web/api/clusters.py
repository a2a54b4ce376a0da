"""Clusters: create, delete, write their runs.

Owns: these routes, the places where requests may write.  Never: starts a broker itself (Cluster
does).  Kafka: kafka-server-start.sh.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, structs

from kcluster.config.files.durations import milliseconds
from kcluster.config.files.key_sets import KEY_SET
from kcluster.config.files.problems import MAX_SHOWN, Problem, TopologyError, show, unknown
from kcluster.config.files.tree import Map, MapEntry, Node, Scalar
from kcluster.config.topology.model import Topology, check_topology
from kcluster.handle.cluster import Cluster
from kcluster.json_types import JsonObject
from kcluster.runs.directory import read_verdict, write_run
from kcluster.scenario.language.schema import topology_schema
from kcluster.web.api.processed import record_of_run
from kcluster.web.api.state import ClusterAnswer, cluster_answer
from kcluster.web.call import ApiAnswer, ApiCall
from kcluster.web.held import MAX_CLUSTERS, HeldCluster, OwnRun
from kcluster.web.problems import RefusedRequest, bad_request, wrong_value, wrong_values
from kcluster.web.routes import Runs, route

MIN_LEASE_MS: Final = 1_000
STOPPING: Final = "stopping"
"""The share of threads in which clusters are stopped."""


class NewCluster(Struct):
    """A cluster to be created.  A YAML body is the topology alone."""

    topology: Annotated[
        Any,
        Meta(
            description="As in a topology file, or its YAML text; without it, 3 brokers.",
            extra_json_schema={"anyOf": [topology_schema(), {"type": ["string", "null"]}]},
        ),
    ] = None
    seed: (
        Annotated[int, Meta(ge=0, description="Of all that is random; without it, drawn.")] | None
    ) = None
    lease: Annotated[
        str | None,
        Meta(
            description="The cluster is deleted if no request names it for this time, such as 60s."
        ),
    ] = None


class DeletedCluster(Struct, frozen=True):
    """The answer to a deletion.  `run`: the cluster's run directory, if one was requested;
    `outcome`, `reason`: from its verdict."""

    id: str
    run: str | None = None
    outcome: str | None = None
    reason: str | None = None


NAMES_OF_FILES: Final = (
    "security.tls.files",
    "security.tls.keystore",
    "security.tls.truststore",
    "ssl.keystore.location",
    "ssl.truststore.location",
    KEY_SET,
)
"""The ends of paths in a topology whose values name a file, or a directory that is written."""
NO_FILES_BY_REQUEST: Final = (
    "a request may not name files of the server; give PEM texts by ssl.keystore.certificate.chain,"
    " ssl.keystore.key and ssl.truststore.certificates, or tls: auto"
)


class DeleteParameters(Struct):
    """The parameters of a deletion: what to write before it."""

    out: Annotated[
        str | None,
        Meta(
            description="Write the run to a new directory below this one: on the server, below the"
            " directory of `kcluster serve --runs`."
        ),
    ] = None


@route(
    "POST",
    "/v1/clusters",
    body=NewCluster,
    takes_yaml=True,
    answer=ClusterAnswer,
    status=201,
    errors=(403, 409, 422),
)
def create_cluster(call: ApiCall) -> ApiAnswer:
    """Start a cluster; answered when its brokers serve clients."""
    if not call.server.clusters.can_create:
        detail = "this server shows the cluster that it runs in; kcluster serve creates clusters"
        raise RefusedRequest(HTTPStatus.FORBIDDEN, detail)
    if len(call.server.clusters.all()) >= MAX_CLUSTERS:
        raise RefusedRequest(HTTPStatus.CONFLICT, f"{MAX_CLUSTERS} clusters run; delete some")
    topology, wanted = read_new_cluster(call)
    lease_s = None if wanted.lease is None else lease_seconds(wanted.lease)
    cluster = Cluster(topology, seed=wanted.seed)
    cluster.open()
    id = call.server.clusters.new_id()
    held = HeldCluster(id, cluster, lease_s=lease_s, stop=cluster.close)
    call.server.clusters.add(held)
    return ApiAnswer(cluster_answer(call, held), headers={"Location": f"/v1/clusters/{id}"})


def read_new_cluster(call: ApiCall) -> tuple[Topology, NewCluster]:
    """The topology and the options of the new cluster; a refusal lists every problem."""
    node = call.node()
    if call.is_yaml:
        topology = read_topology(node, "")
        _refuse_files(call, topology, "")
        return topology, NewCluster()
    if not isinstance(node, Map):
        raise bad_request("the body must be a JSON object")
    known = NewCluster.__struct_fields__
    strange: list[Problem] = []
    for key, entry in node.entries.items():
        if key not in known:
            text = unknown("key", key, known) if len(strange) < MAX_SHOWN else "no such key"
            strange.append(Problem("", entry.line, entry.column, key, text))
    if strange:
        raise wrong_values(strange)
    entry = node.entries.get("topology", MapEntry(Scalar(None)))
    if isinstance(entry.value, Scalar) and entry.value.text is None:
        topology = Topology.of(3)
    elif isinstance(entry.value, Scalar):
        topology = Topology.parse(entry.value.text or "", "topology")
    else:
        topology = read_topology(entry.value, "topology")
    _refuse_files(call, topology, "topology")
    return topology, call.values(NewCluster)


def _refuse_files(call: ApiCall, topology: Topology, path: str) -> None:
    """Refuse a topology that names files: a token reads and writes none of the server's user."""
    named = [] if call.is_local else [at for at in topology.places if at.endswith(NAMES_OF_FILES)]
    if named:
        problems = (topology.problem(at, NO_FILES_BY_REQUEST) for at in named)
        raise TopologyError(
            structs.replace(one, path=f"{path}.{one.path}" if path else one.path)
            for one in problems
        )


def read_topology(node: Node, path: str) -> Topology:
    """The topology in a part of a body; TopologyError has paths from the body's top."""
    topology, problems = check_topology(node, "")
    if topology is None or problems:
        head = f"{path}." if path else ""
        raise TopologyError(
            structs.replace(problem, path=f"{head}{problem.path}" if problem.path else path)
            for problem in problems
        )
    return topology


def lease_seconds(text: str) -> float:
    """The lease that a request asks for, in seconds."""
    try:
        lease_ms = milliseconds(text)
    except ValueError as error:
        raise wrong_value("lease", str(error)) from None
    if lease_ms < MIN_LEASE_MS:
        raise wrong_value("lease", f"{text}: at least {MIN_LEASE_MS // 1000}s")
    return lease_ms / 1000


@route(
    "DELETE",
    "/v1/clusters/<id>",
    query=DeleteParameters,
    answer=DeletedCluster,
    errors=(403, 404, 409, 422),
    runs=Runs.WAITING,
)
def delete_cluster(call: ApiCall) -> DeletedCluster:
    """Stop a cluster, and write its run directory before if `out` names a parent for it."""
    run = outcome = reason = None
    out, own = call.query.out, call.held.own_run
    if own is not None and call.is_local:
        path, verdict = call.in_thread(lambda: finished_run(own, out))
    elif out is not None:
        path, verdict = call.in_thread(lambda: saved_run(call, out, "out"))
    if own is not None or out is not None:
        run, outcome, reason = str(path), verdict["outcome"], verdict["reason"]
    held = call.server.clusters.remove(call.named["id"])
    if call.is_local:
        call.keep_open_until_exit()
    call.server.in_thread(held.stop, STOPPING)
    return DeletedCluster(held.id, run, outcome, reason)


def saved_run(call: ApiCall, directory: str, path: str) -> tuple[Path, JsonObject]:
    """The run directory that was written, and its verdict; a refusal if it cannot be written.
    `path`: the path of the directory in the request."""
    parent = place_of_file(call, directory, path)
    with writing(path, parent):
        run = write_run(parent, record_of_run(call.held)).resolve()
    return run, read_verdict(run)


def finished_run(own: OwnRun, out: str | None) -> tuple[Path, dict[str, Any]]:
    """The complete run directory of a cluster whose run directory is kept current, and its verdict.
    A run is written to one place: a refusal if another place is requested."""
    if out not in (None, str(own.path.parent.resolve())):
        text = (
            f"up --out writes this run to {own.path.resolve()}; leave out --out here, or copy the"
            " run first: kcluster save DIR"
        )
        raise wrong_value("", text)
    with writing("out", own.path):
        run = own.finish().resolve()
    return run, read_verdict(run)


@contextmanager
def writing(path: str, place: Path) -> Iterator[None]:
    """A context for writing files below `place`; a refusal if that is not possible.  `path`: the
    path of the place in the request."""
    try:
        yield
    except OSError as error:
        where = error.filename or place  # a full disk is reported without a name
        raise wrong_value(path, f"{where}: cannot be written: {error.strerror}") from None


def place_of_file(call: ApiCall, given: str, path: str) -> Path:
    """The path of a file to write: a local request may name any path that its user may write; other
    requests, a path below the server's runs."""
    if call.is_local:
        if "\0" in given:
            raise wrong_value(path, f"{given!r}: a path has no NUL")
        return Path(given)
    return place_of_runs(call.server.clusters.runs, given, path)


def place_of_runs(base: Path | None, directory: str, path: str) -> Path:
    """The path of a request's run directory: below `base`, after links are resolved.  A refusal for
    any other path, and if there is no base, because a token alone permits no writes."""
    if base is None:
        detail = (
            "this server writes no files: kcluster save DIR does, on its machine;"
            " GET .../timeline.html has the page"
        )
        raise RefusedRequest(HTTPStatus.FORBIDDEN, detail)
    try:
        place = (base / directory).resolve()
    except (ValueError, OSError, RuntimeError) as error:  # NUL, too long, a circle of links
        reason = error.strerror if isinstance(error, OSError) else "no path"
        raise wrong_value(path, f"{show(directory)}: {reason}") from None
    if not place.is_relative_to(base.resolve()):
        hint = f"not below {base}, where this server writes runs (kcluster serve --runs DIR)"
        raise wrong_value(path, f"{show(directory)}: {hint}")
    return place
