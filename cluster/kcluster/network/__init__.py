"""Links between nodes (fabric, pure), and the sockets of the live driver (listener, connection)."""
