"""`python -m kcluster`, and the entry point of the command `kcluster`.

Owns: making Ctrl-C quiet, and garbage collection rare, from here on.  Never: imports the
command line itself before that.
Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.cli.interrupts import leave_on_interrupt


def main() -> None:
    """Run the command line of this process; never returns."""
    leave_on_interrupt()
    from kcluster.cli.main import main as run
    from kcluster.collector import collect_rarely

    collect_rarely()
    run()


if __name__ == "__main__":
    main()
