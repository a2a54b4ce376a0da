"""Transactions: their coordinators, their states, and the markers that end them.

Owns: the transactions of the __transaction_state partitions that a broker leads.  Never: stores
anything outside of that topic's log, or writes a record or a marker into another partition (its
leader does, on request).  Kafka: kafka.coordinator.transaction; KIP-98, KIP-360, KIP-890.

The path of an EndTxn:

    handlers/transactions/changes.py  end_txn    finds the shard
    coordinator.py                    end        asks for a decision, writes what is decided
    transaction.py                    end        decides: prepare, repeat the last answer, refuse
    log_shard.py                      append     PrepareCommit is written, and then committed
    transaction_shard.py              apply      the client is answered; the markers are due
    markers.py                        start      WriteTxnMarkers to each partition's leader, retried
    transaction.py                    complete   the last marker is in: CompleteCommit is written

transaction.py: one transaction, and every decision about it, on values.  transaction_log.py: the
records.  verification.py: the other side, where a partition's leader asks the coordinator.
"""

from kcluster.broker.coordinator.transactions.coordinator import TransactionCoordinator

__all__ = ["TransactionCoordinator"]
