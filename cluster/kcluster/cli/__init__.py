"""`kcluster`, the command.

verbs/      one file per verb: its click command pipeline/   the verbs of `kcluster pipeline`
remote.py acting.py     the running cluster's HTTP API, as a verb asks it door.py directory.py
the unix socket of a cluster, and where these sockets are main.py click_tools.py      the way to a
verb; groups, sections and options interrupts.py   Ctrl-C foreground.py demo.py decode.py
spark_job.py    the work of `up`, `demo`, `decode`, Spark jobs

Owns: what a person types and reads.  Never: decides anything about a cluster.
"""
