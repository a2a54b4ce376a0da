"""Files inside the package.

Owns: reading text files that ship with the package, recognizing its files.  Never: knows their
meaning.  Kafka: no counterpart. pathlib is avoided because importing it costs a hundredth of the
start (docs: benchmarks).
"""

from __future__ import annotations

import os.path
from typing import Final

PACKAGE: Final = os.path.dirname(os.path.abspath(__file__))
_INSIDE: Final = PACKAGE + os.path.sep


def packaged_text(path: str) -> str:
    """The text of the file at `path`, relative to the package, with `/` between its parts."""
    with open(os.path.join(PACKAGE, *path.split("/")), encoding="utf-8") as file:
        return file.read()


def is_packaged(path: str) -> bool:
    """Whether a file, such as the file of a frame's code, is inside the package."""
    return path.startswith(_INSIDE)
