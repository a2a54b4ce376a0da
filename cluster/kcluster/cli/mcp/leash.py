"""A verb on a leash: it ends with the process that started it, however that ends.

Owns: this program: it runs a verb, and ends it when the standard input ends.  Never: knows a verb,
except that `up` is asked to stop.  Kafka: no counterpart; apache_kafka/reaper.py does the same for
a real Kafka.

    python -m kcluster.cli.mcp.leash DIRECTORY VERB...

It leads a process group: the processes of a search end with it.  DIRECTORY is removed if the
process that started it is gone, and can no longer do that.
"""

from __future__ import annotations

import os
import runpy
import shutil
import signal
import sys
import threading
import time
from typing import Final

REPARENTED_S: Final = 0.1
"""A process that ends closes its pipes a moment before its children get another parent."""
STOPS_WITHIN_S: Final = 2.0
"""The longest time that a cluster gets to stop."""


def main() -> None:
    """Run the verb; never returns."""
    directory, verb = sys.argv[1], sys.argv[2]
    parent = os.getppid()
    # The thread must not be the one that gets the signals by which a cluster stops.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    threading.Thread(target=_end, args=(directory, verb, parent), name="leash", daemon=True).start()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    sys.argv[1:] = sys.argv[2:]
    runpy.run_module("kcluster", run_name="__main__")


def _end(directory: str, verb: str, parent: int) -> None:
    """Wait for the end of the standard input, then end the process group."""
    while os.read(0, 4096):
        pass
    time.sleep(REPARENTED_S)
    if os.getppid() != parent:
        shutil.rmtree(directory, ignore_errors=True)
    if verb == "up":
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(STOPS_WITHIN_S)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
