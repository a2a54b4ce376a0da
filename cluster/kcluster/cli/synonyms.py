"""Words that people who know other tools type, and the verbs that they mean.

Owns: the words.  Never: runs a verb; `kcluster stop` suggests `down`, and does nothing.
Kafka: none.
"""

from __future__ import annotations

from typing import Final

SYNONYMS: Final = {
    "stop": "down, or kill --how clean for one broker",
    "shutdown": "down, or kill --how clean for one broker",
    "ps": "status",
    "ls": "status",
    "list": "status",
    "show": "status",
    "describe": "status",
    "topics": "status, or topic create",
    "brokers": "status",
    "create": "topic create",
    "create-topic": "topic create",
    "delete": "topic delete",
    "logs": "events, or log for a partition's replicas",
    "tail": "events --follow",
    "run": "up, or scenario run",
    "unpause": "resume",
    "partition": "isolate",
    "latency": "slow",
    "delay": "slow",
    "reassign": "move, or fault 'reassign: …'",
    "topic list": "status",
    "topic ls": "status",
    "topic show": "status",
    "topic describe": "status, or log for a partition's replicas",
    "topic alter": "fault 'add_partitions: …' or 'set_config: …'",
    "produce": "client start producer",
    "producer": "client start producer",
    "consume": "client start consumer",
    "consumer": "client start consumer",
    "clients": "client list",
    "groups": "page, which shows groups",
    "config": "fault 'set_config: …'",
    "configs": "fault 'set_config: …'",
    "scenarios": "scenario list",
    "exercises": "exercise list",
    "test": "scenario run",
    "client run": "client start",
    "scenario play": "scenario run, or play",
    "scenario validate": "scenario check",
    "scenario lint": "scenario check",
    "scenario create": "scenario new",
    "scenario init": "scenario new",
    "exercise grade": "exercise check",
    "exercise run": "scenario run FILE",
}
"""The verb that is suggested, by the word after `kcluster`."""
