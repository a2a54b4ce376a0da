"""A run that kills its own process, and a driver to be killed: `dying.py GRID OUT LOG MASTER`.

Owns: plays that note each run in a file, one line each, before it is played.  Never: asserts.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kcluster.pipeline.sweep.columns import Cell
    from kcluster.pipeline.sweep.runs import RunRow

    Play = Callable[[Cell, int], RunRow]


def noting(log: str, kills: dict[int, str], driver: int = 0) -> Play:
    """Plays, and at a seed of `kills` once kills: `worker` its own process, `executor` the Java
    process above it, `driver` that one as soon as the killed executor's run was played again."""

    def play(cell: Cell, seed: int) -> RunRow:
        # Pickled by value, so everything that it needs is imported here.
        import os
        import signal
        import threading
        from pathlib import Path

        import kcluster
        from kcluster.pipeline.sweep.runs import play as real

        with open(log, "a", encoding="utf-8") as opened:
            opened.write(f"{seed} {cell.key} {os.getpid()} {kcluster.__file__}\n")
        whom, mark = kills.get(seed, ""), Path(f"{log}.{seed}")
        if whom and not mark.exists():
            mark.touch()
            if whom == "worker":
                os.kill(os.getpid(), signal.SIGKILL)
            elif whom == "executor":
                status = Path(f"/proc/{os.getppid()}/status").read_text()
                parent = next(line for line in status.splitlines() if line.startswith("PPid:"))
                os.kill(int(parent.split()[1]), signal.SIGKILL)
            else:
                ends = threading.Event()
                first = [other for other, what in kills.items() if what == "executor"]
                for _ in range(600):
                    words = [line.split()[0] for line in Path(log).read_text().splitlines()]
                    if all(words.count(str(other)) > 1 for other in first) or ends.wait(0.05):
                        break
                os.kill(driver, signal.SIGKILL)
                ends.wait(30)  # its task must not be committed; this process ends with the driver
        return real(cell, seed)

    return play


def main(grid: str, out: str, log: str, master: str, kills: str) -> None:
    """A driver that is killed in the middle of its sweep."""
    from kcluster.pipeline.session import SMALL, open_session
    from kcluster.pipeline.sweep.grid import load_grid
    from kcluster.pipeline.sweep.job import sweep

    small = {
        **SMALL,
        "spark.executor.extraJavaOptions": SMALL["spark.driver.extraJavaOptions"],
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    chosen = {int(seed): whom for seed, whom in json.loads(kills).items()}
    spark = open_session(master, small)
    sweep(spark, load_grid(grid), out, play=noting(log, chosen, os.getpid()))


if __name__ == "__main__":
    root = Path(__file__).parents[3]
    sys.path[:0] = [str(root / "cluster"), str(root)]
    main(*sys.argv[1:])
