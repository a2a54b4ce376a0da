"""Requests by API, counted as the brokers answer them.

Owns: the counter.  Never: knows on which clock the cluster runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from kcluster.contract import Reply
from kcluster.protocol.apis import ApiKey


def counts_requests(cluster: Any) -> Counter[str]:
    """Requests answered from now on, by API: `{"FETCH": 542, …}`."""
    counted: Counter[str] = Counter()
    cluster.driver.dispatcher.reply_sinks += (_counting(counted),)
    return counted


def _counting(counted: Counter[str]) -> Callable[[int, Reply, int], None]:
    def count(_: int, reply: Reply, __: int) -> None:
        counted[ApiKey(reply.request.api_key).name] += 1

    return count
