"""The work of `kcluster pipeline timeline`.

Owns: the output.  Never: makes the tables (pipeline/timeline.py) or the page
(pipeline/charts.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.cli.spark_job import report_problems, spark_job
from kcluster.pipeline.charts import write_page
from kcluster.pipeline.progress import Progress
from kcluster.pipeline.timeline import read, timeline, write


def sum_up_runs(paths: tuple[str, ...], out: str, master: str, verbose: bool) -> None:
    """Write the tables and the page of these runs."""
    with spark_job(paths, master, verbose) as job:
        with Progress("reading runs", job.spark) as progress:
            tables = timeline(job.tables)
            progress.part("writing tables")
            places = write(tables, out)
            places.append(write_page(read(job.spark, out), out, len(job.runs)))
        report_problems(job)
        for place in places:
            print(place)
