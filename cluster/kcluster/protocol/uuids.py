"""Kafka's text form of a UUID: 22 characters of URL-safe base64.

Owns: that form.  Never: draws one.  Kafka: org.apache.kafka.common.Uuid.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

_TEXT: Final = re.compile(r"([A-Za-z0-9_-]{22})(==)?")


def uuid_text(uuid: bytes) -> str:
    """The text of 16 bytes."""
    return base64.urlsafe_b64encode(uuid).decode().rstrip("=")


def read_uuid(text: str) -> bytes | None:
    """The 16 bytes of a UUID's text; None if `text` is not a UUID. As in Kafka, the text may have
    base64's padding."""
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    try:
        return base64.urlsafe_b64decode(found[1] + "==")
    except binascii.Error:
        return None
