"""From a real cluster: its description to a topology file, its logs to a scenario."""
