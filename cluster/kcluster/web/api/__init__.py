"""The routes of the HTTP API, a module per subject.

Owns: the module that has the routes of a path.  Never: knows a route.
Kafka: no counterpart.

A module registers its routes when it is imported: with the first request about its subject, so that
the first verb on a cluster does not wait for the import of forks.  `load_all` registers every
route.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

MODULES: Final = (
    "access", "actions", "advertised", "clients", "clock", "state", "clusters", "events",
    "evidence", "forks", "lesson", "metrics", "openapi", "page", "parameters", "predictions",
    "processed", "replicas", "stream", "waiting",
)  # fmt: skip
"""All modules, in the order of the reference."""
_OTHERS: Final = {
    "": "state",
    "client-config": "access",
    "heal": "actions",
    "brokers": "advertised",
    "verdict": "evidence",
    "save": "evidence",
    "timeline.html": "evidence",
    "at": "replicas",
    "wait": "waiting",
    "openapi.json": "openapi",
}
"""The modules whose name is not the first part of the path below the cluster, by that part."""


def load_for(method: str, path: str) -> None:
    """Register the routes that a request may need, and the other routes of their modules."""
    for module in modules_of(method, path):
        _load(module)


def modules_of(method: str, path: str) -> tuple[str, ...]:
    """The modules that may have the route of a request; none if there is no such path."""
    parts = path.strip("/").split("/")
    below = parts[3:] if parts[:2] == ["v1", "clusters"] else parts
    subject = below[0] if below else ""
    if not subject and method != "GET":
        return "state", "clusters"
    module = _OTHERS.get(subject, subject)
    return (module,) if module in MODULES else ()


def load_all() -> None:
    """Register all routes."""
    for module in MODULES:
        _load(module)


def _load(module: str) -> None:
    import_module(f"{__name__}.{module}")
