"""Which nodes of the network are brokers, the project's own clients, clients from outside.

Owns: where each kind's node ids begin.  Never: gives out an id.  Kafka: no counterpart; a broker's
id is its `node.id`, the controller's is `contract.CONTROLLER_ID`.
"""

from __future__ import annotations

from typing import Final

FIRST_CLIENT_ID: Final = 100_000
"""The project's own clients are nodes from this id on, so that their links can be slow or cut."""
FIRST_OUTSIDE_ID: Final = 1_000_000
"""From this id on: clients from outside, one node for each pattern (drivers/outside.py)."""
