"""Transactions: their coordinators, their states, and the markers that end them.

Owns: the transactions of the __transaction_state partitions that a broker leads.  Never: stores
anything outside of that topic's log, or writes a record or a marker into another partition (its
leader does, on request).  Kafka: kafka.coordinator.transaction; KIP-98, KIP-360, KIP-890.

The path of an EndTxn:

    handlers/transactions/changes.py  end_txn    makes it a change: EndTransaction
    coordinator.py                    submit     finds the shard, has the change decide, writes
    transaction.py                    end        decides: prepare, repeat the last answer, refuse
    log_shard.py                      write      PrepareCommit is written, and then committed
    transaction_shard.py              apply      the client is answered; the markers are due
    markers.py                        start      WriteTxnMarkers to each partition's leader, retried
    transaction.py                    complete   the last marker is in: CompleteCommit is written

transaction.py: one transaction, and every decision about it, on values.  changes.py: what requests
and scans change, as values.  transaction_log.py: the records.  verification.py: the other side,
where a partition's leader asks the coordinator.
"""

from kcluster.broker.coordinator.transactions.coordinator import TransactionCoordinator

__all__ = ["TransactionCoordinator"]
