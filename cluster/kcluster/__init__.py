"""kcluster: a Kafka cluster of several brokers, with real replication, in one Python process.

Owns: the public names.  Never: patches anything, or imports more than the version before a name is
used.

    from kcluster import Cluster, Topology

    with Cluster(Topology.of(brokers=3, topics={"orders": {"partitions": 6}})) as c:
        print(c.bootstrap)
"""

from __future__ import annotations

from kcluster.version import __version__

TYPE_CHECKING = False  # as in `typing`, which takes as long to import as the interpreter to start
if TYPE_CHECKING:
    from typing import Final

    from kcluster.config.files.problems import TopologyError
    from kcluster.config.topology.model import Topology
    from kcluster.faults.rules import Rule, RuleError, rule
    from kcluster.handle.cluster import Cluster
    from kcluster.operations.errors import ClusterError
    from kcluster.scenario.perform import do

__all__ = [
    "Cluster", "ClusterError", "Rule", "RuleError", "Topology", "TopologyError", "__version__",
    "build", "do", "rule",
]  # fmt: skip

_HOMES: Final = {
    "Cluster": "kcluster.handle.cluster",
    "ClusterError": "kcluster.operations.errors",
    "Rule": "kcluster.faults.rules",
    "RuleError": "kcluster.faults.rules",
    "do": "kcluster.scenario.perform",
    "Topology": "kcluster.config.topology.model",
    "TopologyError": "kcluster.config.files.problems",
    "rule": "kcluster.faults.rules",
}


def build() -> str:
    """Which build this is: `compiled` (its hot modules are a C extension), or `pure Python`."""
    from importlib.util import find_spec

    spec = find_spec("kcluster.contract")
    assert spec is not None
    return "pure Python" if (spec.origin or "").endswith(".py") else "compiled"


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: `import kcluster` itself costs nothing."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'kcluster' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
