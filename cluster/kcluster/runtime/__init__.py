"""The common part of all drivers: building a cluster, its processes, delivery between them,
rules."""
