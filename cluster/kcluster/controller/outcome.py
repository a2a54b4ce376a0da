"""The error of a request to the controller: a value, never an exception.

Owns: ApiError.  Never: which code a situation gets (the handlers decide).  Kafka: ApiError.
"""

from __future__ import annotations

from msgspec import Struct

from kcluster.protocol.errors import ErrorCode


class ApiError(Struct, frozen=True):
    """A Kafka error code and a message for people; `message` None where Kafka sends none."""

    code: ErrorCode
    message: str | None = None
