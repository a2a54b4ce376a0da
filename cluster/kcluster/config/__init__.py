"""Settings: Kafka's configs by name, and the topology file.

Owns: what can be set, and what is wrong with what was set.  Never: I/O except reading the one file
that it is given (loader.py).
"""
