"""The work of heavy verbs, and the imports for it: half a second for the scenario language,
brokers, web servers.  A verb's module declares its options, and loads its work from here when the
verb is called.
"""
