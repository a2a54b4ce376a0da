"""Bytes <-> messages: Kafka's wire protocol, every API and version, without I/O.

Owns: schemas, codecs, frames, error codes, record batches.  Never: sockets, or any behaviour.
"""
