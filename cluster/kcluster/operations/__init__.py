"""What can be done to a running cluster, on either clock."""
