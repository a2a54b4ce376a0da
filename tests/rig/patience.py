"""How long a live test waits for what must come.

Owns: PATIENCE_S.  Never: waits.
"""

from __future__ import annotations

from typing import Final

PATIENCE_S: Final = 45.0
"""Nearly as long as a test may take (tests/conftest.py): on a machine with a load of 20, 5 s are
too short for what needs a quarter of a second of CPU.  What must not come has a short limit."""
