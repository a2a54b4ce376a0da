"""The error of a request to the controller: a value, never an exception.

Owns: ApiError.  Never: chooses the code (the handlers do).  Kafka: ApiError.
"""

from __future__ import annotations

from msgspec import Struct

from kcluster.protocol.errors import ErrorCode


class ApiError(Struct, frozen=True):
    """A Kafka error code and a message for people; `message` None if Kafka sends none."""

    code: ErrorCode
    message: str | None = None
