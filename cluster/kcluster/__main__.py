"""`python -m kcluster`, and the entry point of the command `kcluster`.

Owns: that from here on Ctrl-C is quiet, and garbage is collected rarely.  Never: imports the
command line itself before that.
Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.cli.interrupts import leave_on_interrupt
from kcluster.collector import collect_rarely


def main() -> None:
    """Run the command line of this process; never returns."""
    leave_on_interrupt()
    collect_rarely()
    from kcluster.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
