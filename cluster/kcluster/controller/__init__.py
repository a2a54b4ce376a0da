"""The controller: the cluster's metadata log, and the decisions recorded in it."""
