"""What heavy verbs do, and the imports for it: half a second of the scenario language, of brokers,
of web servers.  A verb's module declares its options, and loads its work here when it is called.
"""
