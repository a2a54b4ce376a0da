"""The ranges of node ids: brokers, the project's own clients, clients from outside.

Owns: the beginning of each range.  Never: assigns an id.  Kafka: no counterpart; a broker's id is
its `node.id`, the controller's is `contract.CONTROLLER_ID`.
"""

from __future__ import annotations

from typing import Final

FIRST_CLIENT_ID: Final = 100_000
"""The first node id of the project's own clients, which are nodes so that their links can be slow
or cut."""
FIRST_OUTSIDE_ID: Final = 1_000_000
"""The first node id of clients from outside; there is one node for each pattern
(drivers/outside.py)."""
