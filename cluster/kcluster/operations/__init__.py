"""The operations on a running cluster, on either clock."""
