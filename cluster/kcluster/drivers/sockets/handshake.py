"""The error of a connection whose TLS handshake failed, for the listener above it.

Owns: this error, and its text in the broker's log.  Never: does a handshake (drivers/tls/ does).
Kafka: SslAuthenticationException.
"""

from __future__ import annotations

import errno
from typing import Final

from kcluster.security.certificates import HandshakeProblem, handshake_text

HANDSHAKE_FAILED: Final = "SSL handshake failed"
"""How Kafka's log names it: SslTransportLayer.handshakeFailure."""


class HandshakeError(OSError):
    """`problem`: why; `detail`: more about it."""

    def __init__(self, problem: HandshakeProblem, detail: str = "") -> None:
        super().__init__(errno.EPROTO, f"{HANDSHAKE_FAILED}: {handshake_text(problem, detail)}")
        self.problem = problem
        self.detail = detail
