"""The work of `kcluster pipeline judge`.

Owns: the session that fits the files, errors about them.  Never: judges (pipeline/judge.py), shows
a judgement (judge.py).  Kafka: no counterpart.
"""

from __future__ import annotations

from pathlib import Path

from kcluster.cli.click_tools import fail, refuse_both
from kcluster.cli.errors import CommandError
from kcluster.cli.spark_job import spark_session
from kcluster.cli.work.judge import show_judgment
from kcluster.config.files.problems import ProblemsError


def judge_with_spark(
    paths: tuple[str, ...], master: str, verbose: bool, quiet: bool, as_json: bool
) -> None:
    """Judge the history in these files with Spark, print the judgement, and exit."""
    refuse_both(verbose, quiet)
    size_bytes = sum(path.stat().st_size for path in map(Path, paths) if path.is_file())
    with spark_session(master, verbose, size_bytes) as spark:
        from kcluster.pipeline.judge import judge_files  # it imports pyspark

        try:
            judgment = judge_files(spark, paths)
        except ProblemsError as error:
            fail(CommandError(str(error), 2))
    show_judgment(judgment, None, verbose, quiet, as_json)
