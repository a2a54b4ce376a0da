"""The id of the controller among the nodes.

Owns: that number, apart from contract.py for the command line, which cannot wait for msgspec.
Never: imports anything.
Kafka: `node.id` of a process with the role controller.
"""

from __future__ import annotations

from typing import Final

CONTROLLER_ID: Final = 3000
"""The controller's id.  Kafka's habit is to give controllers ids from 3000 on."""
