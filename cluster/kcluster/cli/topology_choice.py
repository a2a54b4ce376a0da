"""The topology that a command line selects, with a check that its ports are free.

Owns: the defaults of FILE, probing the ports before anything starts.  Never: reads YAML itself.
"""

from __future__ import annotations

import errno
import os
import socket
from typing import Final

from kcluster.config.files.problems import Problem, TopologyError
from kcluster.config.topology.model import Topology, check_ports

DEFAULT_FILE: Final = "topology.yaml"
DEFAULT_BROKERS: Final = 3
DEFAULT_BASE_PORT: Final = 9092


def choose_topology(
    file: str | None,
    brokers: int | None = None,
    base_port: int | None = None,
    profile: str | None = None,
) -> Topology:
    """The topology in FILE, overridden by the options.  Without FILE: `topology.yaml` if it exists
    and `--brokers` is not given, else brokers on 9092 and up.  A base port of 0 means free ports.

    Raises TopologyError with every problem.
    """
    if file is None and brokers is None and os.path.exists(DEFAULT_FILE):
        file = DEFAULT_FILE
    if file is not None and file.isdecimal() and not os.path.exists(file):
        text = f"no such file; for {file} brokers: --brokers {file}"
        raise TopologyError([Problem(file, 0, 0, "", text)])
    if file is not None:
        return Topology.load(file, brokers=brokers, base_port=base_port, profile=profile)
    port = DEFAULT_BASE_PORT if base_port is None else base_port
    return Topology.of(
        DEFAULT_BROKERS if brokers is None else brokers, base_port=port or None, profile=profile
    )


def without_effect_line(topology: Topology) -> str | None:
    """The line that names the configs that the topology sets without an effect here, or None."""
    names = topology.without_effect
    return f"kcluster: no effect here: {', '.join(names)}" if names else None


def require_free_ports(topology: Topology) -> None:
    """Raise TopologyError, with a line for each port that is in use."""
    problems = check_ports(topology, why_port_is_taken)
    if problems:
        raise TopologyError(problems)


def why_port_is_taken(host: str, port: int) -> str | None:
    """The reason why a listener cannot bind to the port; None if it can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return "in use by another process"
            return str(error.strerror)
    return None
