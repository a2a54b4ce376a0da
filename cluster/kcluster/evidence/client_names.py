"""The names of clients, by the client ids in their requests.

Owns: distinguishing simulated clients from others by their ids.  Never: finds a client of another
kind.  Kafka: client.id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kcluster.config.files.numbers import whole_number
from kcluster.network.node_ids import FIRST_CLIENT_ID

NAME_CHARS: Final = 200
"""The length of a client's name in the record; Kafka takes ids of 32,767 bytes."""


def keeps_a_ledger(client_id: str | None) -> bool:
    """Whether a Kafka client id was assigned by one of our wires: such a client writes its own
    ledger."""
    if client_id is None or not client_id.startswith("client-"):
        return False
    number = whole_number(client_id.removeprefix("client-"))
    return number is not None and number >= FIRST_CLIENT_ID


def client_name(client_id: str | None, simulated: Mapping[int, str]) -> str:
    """The name of a client: a simulated client's own name, else its id, cut to NAME_CHARS.
    `simulated`: the names of simulated clients, by node id."""
    if client_id is None:
        return ""
    if keeps_a_ledger(client_id):
        return simulated.get(int(client_id.rpartition("-")[2])) or client_id
    return client_id if len(client_id) <= NAME_CHARS else f"{client_id[:NAME_CHARS]}…"
