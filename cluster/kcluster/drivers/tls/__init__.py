"""TLS of brokers' listeners: certificates, contexts, sockets."""
