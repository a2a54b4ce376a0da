"""Topics of a cluster to a table, exactly once: Structured Streaming from either of two sources.

`job.ingest(spark, IngestOptions(...))` does it; `table.read_records(spark, out)` is what it wrote.
Importing this does not import pyspark: a job does, when it is run."""
