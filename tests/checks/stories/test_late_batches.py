"""Late batches of a client with transactions of version 1, which join its next transaction."""

from __future__ import annotations

from kcluster.evidence.causes import Cause
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario

LATE = "{api: Produce, probability: 0.4, delay: 500ms, of: request, jitter: 3s}"
TWIN = f"""
topology:
  brokers: 3
  topics: {{orders: {{replication_factor: 3, config: {{min.insync.replicas: 2}}}}}}
  config: {{transaction.state.log.num.partitions: 1, transaction.state.log.min.isr: 2}}
workload:
  producers:
    - topic: orders
      name: twin
      rate: 5/s
      start: 2s
      transactions: {{every: 2, timeout: 5s, version: 1}}
      config: {{request.timeout.ms: 1000}}
duration: 8s
steps:
  - {{at: 4s, rule: {LATE}, for: 5s}}
  - {{at: 5s, rule: {LATE}, for: 5s}}
  - {{at: 6s, rule: {LATE}, for: 5s}}
checks: {{anomalies: {{lost-write: 2, aborted-read: 2}}, causes: [transactions-v1]}}
"""


def test_late_batches__of_version_1_join_the_next_transaction_in_place_of_its_own_batch() -> None:
    """The retry of a batch is refused as out of order while its commit waits; so the producer
    aborts, and uses the sequence again, in the same epoch.  Then the first attempt arrives: the
    leader appends it to the next transaction, and takes that transaction's own batch for a copy.
    Kafka's client asks for another epoch only if it is not yet about to end the transaction
    (TransactionManager.maybeTransitionToErrorState)."""
    result = run_scenario(Scenario.parse(TWIN), "virtual", 1377)
    assert result.failures == []
    assert [one.causes[-1] for one in result.verdict.anomalies] == [Cause.TRANSACTIONS_V1] * 2
