"""`kcluster pipeline timeline RUN…`: what many runs have in common, as tables and one page.

Owns: options, how bad input is told.  Never: the tables
(pipeline/timeline.py), the page (pipeline/charts.py).
"""

from __future__ import annotations

import click

from kcluster.cli.pipeline.audit import first_line, refuse, session, tell


@click.command("timeline", help="Windows, failovers, errors, ISR churn and latencies of many runs.")
@click.argument("paths", metavar="RUN...", nargs=-1, required=True)
@click.option("--out", metavar="DIR", default="timeline", show_default=True, help="Where to.")
@click.option("--master", default="local[*]", show_default=True, help="Spark's master.")
@click.option("-v", "--verbose", is_flag=True, help="Spark's own warnings too.")
def command(paths: tuple[str, ...], out: str, master: str, verbose: bool) -> None:
    """RUN: run directories, or directories that have some."""
    from kcluster.pipeline.tables import find_runs
    from kcluster.runs.directory import RunError

    try:
        runs, problems = find_runs(paths)
    except RunError as error:
        refuse(str(error))
    spark = session(master, verbose, runs)
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from kcluster.pipeline.charts import write_page
    from kcluster.pipeline.progress import Progress
    from kcluster.pipeline.tables import Tables
    from kcluster.pipeline.timeline import read, timeline, write

    tables = Tables(spark, runs)
    try:
        with Progress("reading runs", spark) as progress:
            found = timeline(tables)
            progress.part("writing tables")
            places = write(found, out)
            places.append(write_page(read(spark, out), out, len(runs)))
        tell((*problems, *tables.problems))
        for place in places:
            print(place)
    except (PySparkException, Py4JError) as error:
        refuse(first_line(error))
    except OSError as error:
        refuse(f"{error.filename}: {error.strerror}")
    finally:
        tables.close()
