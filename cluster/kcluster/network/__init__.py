"""Links between nodes (latency, loss, bandwidth, cuts) and the passage of clients' messages over
them."""
