"""`kcluster`: from a command line to a verb.

Owns: the choice of the parser for the command line.  Never: does a verb's work.  Start-up time is a
feature.  A plain `kcluster up …` is parsed without click (up_options.py), which would take a third
of the time until the first broker answers; everything else goes to click.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Sequence
from typing import Final

from kcluster.plain_output import escape_outputs

STARTED_S: Final = time.monotonic()
"""The time at which this process started, without the interpreter's own start."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line `arguments`, by default the process's; never returns."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        escape_outputs()
    try:
        _run(words)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EPIPE):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the remaining output is not written at exit
        if error.errno == errno.EPIPE:
            sys.exit(1)  # the reader of the output has closed it
        print(f"kcluster: {error.filename or 'the output'}: {error.strerror}", file=sys.stderr)
        sys.exit(2)


def _run(words: list[str]) -> None:
    if words[:1] == ["up"]:
        from kcluster.cli.up_options import quick_up_options

        if (options := quick_up_options(words[1:])) is not None:
            import gc

            gc.disable()  # imports stay in memory; scanning them takes a tenth of the start
            from kcluster.cli.foreground import run_reporting

            sys.exit(run_reporting(options, STARTED_S))
    from kcluster.cli.click_tools import kcluster

    try:
        kcluster.main(args=words, prog_name="kcluster")
    finally:
        sys.stdout.flush()  # a full disk is reported here, not by the interpreter at its exit


if __name__ == "__main__":
    main()
