"""Names of configs as people write them: `min.insync.replicas` and `min_insync_replicas`.

Owns: that underscores may stand for dots wherever a config is named.  Never: decides whether there
is such a config.  Kafka: its names have dots; in Python and in sweeps they have underscores.
"""

from __future__ import annotations

from collections.abc import Container


def config_name(written: str, known: Container[str]) -> str:
    """Kafka's name of a config; what was written if `known` has no such name."""
    if written in known:
        return written
    dotted = written.replace("_", ".")
    return dotted if dotted in known else written
