"""`kcluster pipeline timeline RUN…`: statistics of many runs, as tables and one page.

Owns: the verb's options, what is printed.  Never: makes the tables (pipeline/timeline.py) or the
page (pipeline/charts.py).
"""

from __future__ import annotations

import click

from kcluster.cli.spark_job import report_problems, spark_job


@click.command("timeline")
@click.argument("paths", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--out", metavar="DIR", default="timeline", show_default=True, help="The output directory."
)
@click.option("--master", default="local[*]", show_default=True, help="Spark's master.")
@click.option("-v", "--verbose", is_flag=True, help="Show Spark's own warnings.")
def command(paths: tuple[str, ...], out: str, master: str, verbose: bool) -> None:
    """Sum up many runs: unavailable windows, failovers, errors, ISR churn, latencies.

    RUN is a run directory, or a directory that contains some.
    """
    with spark_job(paths, master, verbose) as job:
        from kcluster.pipeline.charts import write_page
        from kcluster.pipeline.progress import Progress
        from kcluster.pipeline.timeline import read, timeline, write

        with Progress("reading runs", job.spark) as progress:
            tables = timeline(job.tables)
            progress.part("writing tables")
            places = write(tables, out)
            places.append(write_page(read(job.spark, out), out, len(job.runs)))
        report_problems(job)
        for place in places:
            print(place)
