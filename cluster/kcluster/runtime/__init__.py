"""What both drivers share: building a cluster, its processes, delivery between them, rules."""
