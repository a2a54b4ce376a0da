"""TLS where a topology asks for it: nothing of it is imported otherwise.

Owns: the message for an installation without the extra.  Never: does anything of TLS.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from kcluster.config.files.problems import TopologyError
from kcluster.config.topology.model import Topology
from kcluster.extras import how_to_install
from kcluster.security.certificates import BrokerCertificate

if TYPE_CHECKING:
    from kcluster.drivers.tls.cluster_tls import ClusterTls

EXTRA: Final = "security"


def require_stores(topology: Topology) -> None:
    """Raise TopologyError with a problem for each keystore that cannot be used."""
    if topology.has_tls:
        problems = _loaded(topology).store_problems(topology)
        if problems:
            raise TopologyError(problems)


def tls_of(
    topology: Topology,
    shown: Mapping[int, BrokerCertificate],
    shown_until_ms: dict[tuple[int, str], int],
    *,
    names: Callable[[], Iterable[str]],
    fixed_size: bool,
    log: Callable[[str], None],
) -> ClusterTls | None:
    """The TLS of a cluster, with the arguments of ClusterTls; None if no listener has it."""
    if not topology.has_tls:
        return None
    return _loaded(topology)(
        topology, shown, shown_until_ms, names=names, fixed_size=fixed_size, log=log
    )


def _loaded(topology: Topology) -> type[ClusterTls]:
    """The class, from its module."""
    try:
        from kcluster.drivers.tls import cluster_tls
    except ModuleNotFoundError as error:
        raise TopologyError([topology.problem("listeners", needs_extra(error))]) from None
    return cluster_tls.ClusterTls


def needs_extra(error: ModuleNotFoundError) -> str:
    """The message for an installation in which TLS could not be imported.  Another missing module
    is raised again."""
    if error.name is None or not error.name.startswith("cryptography"):
        raise error
    return f"TLS needs the extra {EXTRA}: {how_to_install(EXTRA)}"
