"""Topics of a cluster, read into a table exactly once: Structured Streaming from either of two
sources.

`job.ingest(spark, IngestOptions(...))` writes the table, `table.read_records(spark, out)` reads it.
Importing this package does not import pyspark; running a job does."""
