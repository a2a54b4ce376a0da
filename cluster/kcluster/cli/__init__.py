"""`kcluster`, the command: one verb a file.

Owns: what a person types and reads.  Never: decides anything about a cluster; verbs ask the running
one (control/client.py, control/server.py), `up` and `demo` hold one (handle/cluster.py).
"""
