"""`kcluster`, the command.

verbs/      one file per verb: its click command, its request, its handler in the running cluster
    pipeline/   the same for `kcluster pipeline`
    control/    the control socket, over which a verb reaches the running cluster
    main.py click_tools.py      the way to a verb; groups, sections and options
    interrupts.py   Ctrl-C
    foreground.py demo.py decode.py spark_job.py    the work of `up`, `demo`, `decode`, Spark jobs

Owns: what a person types and reads.  Never: decides anything about a cluster.
"""
