"""The cost that one client may cause: the time and the size of each phase of a request.

Owns: these numbers.  Never: enforces them (connection.py, server.py and application.py do).
Kafka: connections.max.idle.ms, socket.request.max.bytes, max.connections.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

MAX_HEADERS: Final = 100
"""The most lines of a header; http.client refuses more."""


class WebLimits(Struct, frozen=True):
    """The limits of one server."""

    idle_s: Annotated[
        float, Meta(description="An open connection without a request is closed after it.")
    ] = 75.0
    header_s: Annotated[
        float, Meta(description="From the first byte of a request to the end of its header.")
    ] = 10.0
    header_bytes: Annotated[int, Meta(description="The header of a request.")] = 32 * 1024
    body_s: Annotated[float, Meta(description="The whole body of a request.")] = 30.0
    body_bytes: Annotated[
        int, Meta(description="The body of a request; a topology may have 512 KiB.")
    ] = 1 << 20
    send_s: Annotated[
        float, Meta(description="64 KiB of an answer; a client that reads slower is left.")
    ] = 30.0
    connections: Annotated[int, Meta(description="Open connections.")] = 4_096
    requests: Annotated[
        int,
        Meta(description="Requests that wait for a cluster or are computed; streams do not count."),
    ] = 2_048
    threads: Annotated[int, Meta(description="Requests that are computed at once.")] = 64
    threads_of_one: Annotated[
        int, Meta(description="Requests that are computed at once for the same cluster.")
    ] = 4
