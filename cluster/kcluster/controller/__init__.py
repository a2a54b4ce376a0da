"""The controller: the cluster's metadata log, and the decisions that end up in it."""
