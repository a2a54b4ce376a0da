"""`kcluster pipeline judge FILE…`: the judge of long histories.

Owns: the verb's options.  Never: judges (pipeline/judge.py).
"""

from __future__ import annotations

import click


@click.command("judge")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True)
@click.option("--master", default="local[*]", show_default=True, help="Spark's master.")
@click.option("-v", "--verbose", is_flag=True, help="Show every anomaly, and Spark's warnings.")
@click.option("-q", "--quiet", is_flag=True, help="Show only the last line, the answer.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(paths: tuple[str, ...], master: str, verbose: bool, quiet: bool, as_json: bool) -> None:
    """Judge histories of any length, as kcluster judge does.

    FILE has JSON lines of operations. Several files are one history. The judgement is that of
    kcluster judge, and so is the exit code.
    """
    from kcluster.cli.work.long_history import judge_with_spark

    judge_with_spark(paths, master, verbose, quiet, as_json)
