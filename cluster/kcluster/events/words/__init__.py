"""The words for events: the one place where a fact becomes a sentence.

Owns: the text of every kind of event, for terminals, pages and verdicts.  Never: decides anything.
No code may decide by these texts (tests/test_tidy.py): facts are read from fields.
Kafka: the messages of its logs, e.g. state.change.logger.

`text_of`: the change and its reason.
`text_after_subject`: this text for a line that has just named the subject.
`sentence_of`: this text as a whole sentence, with its subject.

There is a module for each module of events, reasons.py for reasons, and lines.py for whole lines.
"""

from kcluster.events.words import brokers, clients, programs, security, steps, topics  # noqa: F401  # they register
from kcluster.events.words.base import text_of
from kcluster.events.words.groups import departure_text, member_name
from kcluster.events.words.lines import is_said_by, sentence_of, short_text, text_after_subject
from kcluster.events.words.network import effect_text, impairment_text, node_names
from kcluster.events.words.partitions import election_text
from kcluster.events.words.reasons import reason_text

__all__ = [
    "departure_text", "effect_text", "election_text", "impairment_text",
    "is_said_by", "member_name", "node_names", "reason_text", "sentence_of", "short_text",
    "text_after_subject", "text_of",
]  # fmt: skip
