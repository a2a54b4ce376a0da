"""The disk of a mirrored broker: whether the real directories are to be emptied.

Owns: MirrorDisk.  Never: touches a file (driver.py has the processes' directories emptied).
Kafka: no counterpart.

A module of its own, because Disk is interpreted in the compiled build, and driver.py is not: mypyc
refuses a compiled class whose base has slots.
"""

from __future__ import annotations

from kcluster.partition.disk import Disk


class MirrorDisk(Disk):
    """The logs of a broker as far as they are known.  `is_wiped`: whether the real directories are
    to be emptied, now that the process has ended."""

    is_wiped = False

    def wipe(self) -> None:
        super().wipe()
        self.is_wiped = True
