"""Settings: Kafka's configs by name, and the topology file.

Owns: the settings, and the problems of their values.  Never: does I/O except reading the one given
file (loader.py).
"""
