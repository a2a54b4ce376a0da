"""Links between nodes (latency, loss, bandwidth, cuts) and how clients' messages pass over them."""
