"""kcluster: a Kafka cluster of several brokers, with real replication, in one Python process.

Owns: the public names.  Never: imports anything before it is asked for, or patches anything.

    from cluster import Cluster, Topology

    with Cluster(Topology.of(brokers=3, topics={"orders": {"partitions": 6}})) as c:
        print(c.bootstrap)
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cluster.config.topology import Topology, TopologyError
    from cluster.network.rules import Rule, RuleError, rule
    from cluster.runtime.cluster import Cluster
    from cluster.runtime.verbs import ClusterError
    from cluster.scenario.deeds import do

__version__ = "0.1.0"

__all__ = [
    "Cluster", "ClusterError", "Rule", "RuleError", "Topology", "TopologyError", "__version__",
    "build", "do", "rule",
]  # fmt: skip

_HOMES: Final = {
    "Cluster": "cluster.runtime.cluster",
    "ClusterError": "cluster.runtime.verbs",
    "Rule": "cluster.network.rules",
    "RuleError": "cluster.network.rules",
    "do": "cluster.scenario.deeds",
    "Topology": "cluster.config.topology",
    "TopologyError": "cluster.config.topology",
    "rule": "cluster.network.rules",
}


def build() -> str:
    """Which build this is: `compiled` (its hot modules are a C extension), or `pure Python`."""
    spec = find_spec("cluster.contract")
    assert spec is not None
    return "pure Python" if (spec.origin or "").endswith(".py") else "compiled"


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `import cluster` itself costs nothing."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'cluster' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
