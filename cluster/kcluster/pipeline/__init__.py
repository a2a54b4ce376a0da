"""Jobs on Spark over the runs of simulated clusters.

`tables.py` reads run directories as DataFrames; `audit.py` and `timeline.py` are jobs, each a plain
function on them.  Importing this package does not import pyspark; running a job does."""
