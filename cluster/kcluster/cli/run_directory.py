"""The run directory of `kcluster up --out DIR`: kept current while the cluster runs.

Owns: the thread that writes it, and the times of writing.  Never: knows its files
(runs/journal.py), blocks the cluster while it writes.  Kafka: no counterpart.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Final

from kcluster.cli.writing import writing
from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError
from kcluster.runs.journal import Journal

EVERY_S: Final = 1.0
"""The interval of writes; a process that is killed loses at most this much of the run."""


class LiveRunWriter:
    """Writes the run of a cluster that is recorded to a new directory below `parent`.  CommandError
    if it cannot be made."""

    def __init__(self, cluster: Cluster, parent: str) -> None:
        self._cluster = cluster
        with writing(parent):
            self._journal = Journal(parent, cluster.run_info(), cluster.recorder)
        self._written_ms = -1
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="run directory", daemon=True)
        self._thread.start()

    @property
    def path(self) -> Path:
        return self._journal.path

    def finish(self) -> Path:
        """Write the whole run, with its verdict and its page; the cluster must still run.
        CommandError if it cannot be written."""
        self._is_over.set()
        self._thread.join()
        with writing(str(self.path)):
            return self._cluster.save("", into=self.path)

    def _work(self) -> None:
        try:
            while not self._is_over.wait(EVERY_S):
                rows, until_ms = self._cluster.recorded_since(self._written_ms)
                self._journal.write(rows, until_ms)
                self._written_ms = until_ms
        except ClusterError:
            return  # it has stopped
        except OSError as error:
            where = error.filename or self.path  # a full disk is reported without a name
            text = f"{where}: {error.strerror}; the run is written again at the end"
            print(f"kcluster: {text}", file=sys.stderr)
