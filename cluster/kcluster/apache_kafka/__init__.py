"""A real Apache Kafka as the processes of a topology: one JVM per node.

Owns: where Java and Kafka's jars are, the server.properties of each node, its storage, its process,
its network, and that nothing is left behind.  Never: knows a handle, or speaks Kafka's protocol.
Kafka: bin/kafka-server-start.sh, bin/kafka-storage.sh.
"""
