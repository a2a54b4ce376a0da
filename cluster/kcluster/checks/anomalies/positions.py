"""The positions of consumers: the read that each read follows.

Owns: which two reads of a consumer must be of neighbouring records.  Never: judges them
(poll_skip.py, nonmonotonic_poll.py and judge/ do).  Kafka: SubscriptionState.position.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcluster.clients.ledger import ReadRecord


def followed(reads: Sequence[ReadRecord]) -> list[int]:
    """For each read of a partition the number of the read that it follows: the last one of its
    consumer; -1 for none, and after a new position.  After a poll that was rewound, the consumer
    goes on from where it had been before."""
    last: dict[str, int] = {}
    rewound: dict[tuple[str, int], int] = {}
    before: list[int] = []
    for number, read in enumerate(reads):
        found = -1 if read.restarted else last.get(read.consumer, -1)
        if read.rewound_after:
            poll = (read.consumer, read.rewound_after)
            found = rewound.get(poll, found)
            rewound[poll] = number
        else:
            last[read.consumer] = number
        before.append(found)
    return before
