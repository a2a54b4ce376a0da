"""Names of configs as people write them: `min.insync.replicas` and `min_insync_replicas`.

Owns: the rule that underscores may stand for dots in names of configs.  Never: decides whether a
config exists.  Kafka: its names have dots; in Python and in sweeps they have underscores.
"""

from __future__ import annotations

from collections.abc import Container


def config_name(written: str, known: Container[str]) -> str:
    """Kafka's name of a config; the text as it was written if `known` does not have such a name."""
    if written in known:
        return written
    dotted = written.replace("_", ".")
    return dotted if dotted in known else written
