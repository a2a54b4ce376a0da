"""Who is in the cluster and alive."""
