"""What a request of the controller failed with: a value, never an exception.

Owns: ApiError.  Never: which code a situation gets (the handlers decide).  Kafka: ApiError.
"""

from __future__ import annotations

from msgspec import Struct

from kcluster.protocol.errors import ErrorCode


class ApiError(Struct, frozen=True):
    """A Kafka error code and the words for a person; `message` None where Kafka sends none."""

    code: ErrorCode
    message: str | None = None
