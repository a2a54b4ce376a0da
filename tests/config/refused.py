"""Topologies that are refused, as the lines that a user reads."""

from __future__ import annotations

import pytest

from kcluster.config.files.problems import TopologyError
from kcluster.config.topology.model import Topology


def problems_of(text: str | bytes) -> list[str]:
    with pytest.raises(TopologyError) as caught:
        Topology.parse(text, "t.yaml")
    return str(caught.value).splitlines()
