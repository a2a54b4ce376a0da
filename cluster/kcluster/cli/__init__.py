"""`kcluster`, the command.

- `verbs/`: a file per verb, which is its click command; `pipeline/`: the verbs of `kcluster
  pipeline`.
- `work/`: the work of verbs that takes long to import.
- `remote.py`, `acting.py`: the running cluster's HTTP API, as a verb asks it.
- `door.py`, `directory.py`: the unix socket of a cluster, and where these sockets are.
- `main.py`, `click_tools.py`: the way to a verb; groups, sections and options.
- `interrupts.py`: Ctrl-C.
- `foreground.py`, `spark_job.py`: the work of `up` and of Spark jobs.

Owns: everything that a person types and reads.  Never: decides anything about a cluster.
"""
