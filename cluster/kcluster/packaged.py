"""Text files that ship inside the package.

Owns: how they are read.  Never: knows what they mean.  Kafka: no counterpart.
pathlib is avoided because importing it costs a hundredth of the start (docs: benchmarks).
"""

from __future__ import annotations

import os.path
from typing import Final

PACKAGE: Final = os.path.dirname(os.path.abspath(__file__))


def packaged_text(path: str) -> str:
    """The text of the file at `path`, relative to the package, with `/` between its parts."""
    with open(os.path.join(PACKAGE, *path.split("/")), encoding="utf-8") as file:
        return file.read()
