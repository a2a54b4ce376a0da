"""What real clients leave to Python's garbage collector.

Owns: collecting it where it harms no other test.  Never: decides when.
"""

from __future__ import annotations

import gc
import warnings


def collect_silently() -> None:
    """Collect all garbage, without the warnings of sockets and streams that are open."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
