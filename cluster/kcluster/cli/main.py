"""`kcluster`: from a command line to a verb.

Owns: which parser reads the command line.  Never: does a verb's work.  Start-up time is a
feature.  A plain `kcluster up …` is parsed here without click, which would take a third of the time
until the first broker answers.  Everything that this parser is not certain about, including
`--help`, goes to click.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Sequence
from typing import Final

from kcluster.json_types import JsonObject
from kcluster.plain_output import escape_outputs

STARTED_S: Final = time.monotonic()
"""When this process started, without the interpreter's own start."""

_UP_FLAGS: Final = {
    "--json": "as_json",
    "--trace-requests": "trace_requests",
    "--quiet": "quiet",
    "-q": "quiet",
    "--no-record": "no_record",
    "--page": "page",
}
_UP_VALUES: Final = {
    "--brokers": "brokers",
    "--base-port": "base_port",
    "--profile": "profile",
    "--name": "name",
    "--out": "out",
    "--record": "record",
}
_UP_NUMBERS: Final = {"brokers": (1, 100), "base_port": (0, 65535)}
_PROFILES: Final = ("kafka", "fast", "slow")


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
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left is not written at exit
        if error.errno == errno.EPIPE:
            sys.exit(1)  # the reader of the output has closed it, and wants no more
        print(f"kcluster: {error.filename or 'the output'}: {error.strerror}", file=sys.stderr)
        sys.exit(2)


def _run(words: list[str]) -> None:
    if words[:1] == ["up"] and (options := quick_up_options(words[1:])) is not None:
        import gc

        gc.disable()  # imports stay in memory; scanning them takes a tenth of the start
        from kcluster.cli.foreground import UpOptions, run_reporting

        sys.exit(run_reporting(UpOptions(**options), STARTED_S))
    from kcluster.cli.click_tools import kcluster

    try:
        kcluster.main(args=words, prog_name="kcluster")
    finally:
        sys.stdout.flush()  # a full disk is reported here, not by the interpreter at its exit


def quick_up_options(words: Sequence[str]) -> JsonObject | None:
    """The options of a plain `kcluster up …`; None if click must parse it."""
    options: JsonObject = {}
    rest = iter(words)
    for word in rest:
        flag, has_value, value = word.partition("=")
        if word in _UP_FLAGS:
            options[_UP_FLAGS[word]] = True
        elif flag in _UP_VALUES:
            typed = value if has_value else next(rest, "")
            checked = _checked(_UP_VALUES[flag], typed)
            if checked is None:
                return None
            options[_UP_VALUES[flag]] = checked
        elif word and not word.startswith("-") and "file" not in options:
            options["file"] = word
        else:
            return None
    return options


def _checked(option: str, text: str) -> str | int | None:
    if not text or text.startswith("-"):
        return None
    if option in _UP_NUMBERS:
        low, high = _UP_NUMBERS[option]
        is_number = text.isascii() and text.isdecimal()
        return int(text) if is_number and low <= int(text) <= high else None
    if option == "profile" and text not in _PROFILES:
        return None
    return text


if __name__ == "__main__":
    main()
