"""The control socket: how a command reaches the running cluster, and how the cluster answers.

No module here knows a verb by name.  A verb declares its request and its handler in its own file,
`cluster/kcluster/cli/verbs/<verb>.py`.
"""
