"""The demo's story: a leader is killed under load, comes back, and gets its leadership back.

Owns: the changes of the cluster, their times, and the lines that may be sent meanwhile.  Never:
counts (demo/count.py), sends (demo/load.py), prints.  Kafka: the failover in every introduction.

The second act shows an error code.  In the first act, a killed process refuses connections, and a
client looks for another broker.  NOT_LEADER_OR_FOLLOWER comes from a broker that is alive but no
longer the leader.  So the old leader is started again and, once it is back in the ISR, elected
while clients still send to its successor.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from kcluster.demo.count import DemoLedger
from kcluster.demo.load import CONSUMER_ID, PRODUCER_ID, Consuming, Producing
from kcluster.demo.watch import FailoverWatch, is_ack_of, is_refusal, took_over
from kcluster.events.brokers import BrokerDown, BrokerEvent, BrokerFenced, BrokerStarted
from kcluster.events.partitions import IsrExpanded
from kcluster.events.timeline import Moment, in_order
from kcluster.events.words import sentence_of, text_of
from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError

ASSIGNED_TIMEOUT_S: Final = 30.0
SEEN_TIMEOUT_S: Final = 30.0
REFUSED_TIMEOUT_S: Final = 3.0
"""The time for which the second act waits for a refused request; with very few lines there may be
none."""


class DemoStory:
    """One run.  `stage` shows the current step, on the progress bar.  `before_kill` returns when
    the leader may be killed."""

    def __init__(
        self,
        cluster: Cluster,
        watch: FailoverWatch,
        ledger: DemoLedger,
        producing: Producing,
        consuming: Consuming,
        stage: Callable[[str], None],
        before_kill: Callable[[], None] | None = None,
    ) -> None:
        self._cluster, self._watch, self._ledger = cluster, watch, ledger
        self._producing, self._consuming, self._stage = producing, consuming, stage
        self._before_kill = before_kill
        self._topic = watch.topic

    def play(self) -> list[Moment]:
        """Play the story, from the consumer's joining to the last line that may be sent; returns
        the timeline."""
        total = len(self._ledger.lines)
        self._stage("the consumer joins its group")
        self._consuming.start()
        if not self._consuming.assigned.wait(ASSIGNED_TIMEOUT_S):
            raise ClusterError("the consumer did not get its partitions")
        self._stage("producing and consuming")
        self._producing.allowed = total // 2
        self._producing.start()
        self._until(lambda: self._ledger.sent >= total // 2 and bool(self._ledger.acked))

        if self._before_kill is not None:
            self._before_kill()
        partition = self._ledger.busiest_partition()
        leader = self._cluster.leader(self._topic, partition)
        self._watch.arm(partition)
        moments = self._kill(partition, leader, total)
        moments += self._return(partition, leader, total)
        self._stage("the remaining lines are sent and read")
        return in_order(moments)

    def _kill(self, partition: int, leader: int, total: int) -> list[Moment]:
        """Play the first act: the leader dies, and another broker takes over."""
        name = f"{self._topic}-{partition}"
        acked = self._ledger.acked_of_partition.get(partition, 0)
        self._stage(f"broker {leader}, leader of {name}, is killed")
        note_since, answer_since = len(self._watch.notes), len(self._watch.answers)
        self._producing.allowed = total * 3 // 4
        # A burst is under way when the leader dies; after that, single lines.
        time.sleep(0.03)
        self._producing.trickle = True
        self._cluster.kill(leader)
        new_leader = self._cluster.leader(self._topic, partition)
        self._until(
            lambda: (
                self._watch.first_answer(is_ack_of(new_leader), answer_since) is not None
                or self._all_answered()
            )
        )
        moments = [
            self._note_moment(
                BrokerDown,
                leader,
                "killed",
                note_since,
                f"broker {leader}, leader of {name}: {acked:,} lines acked there so far",
            ),
            self._note_moment(BrokerFenced, leader, "noticed", note_since, None),
        ]
        moments += took_over(
            self._watch, new_leader, (PRODUCER_ID, CONSUMER_ID), note_since, answer_since
        )
        return moments

    def _return(self, partition: int, leader: int, total: int) -> list[Moment]:
        """Play the second act: the old leader returns, catches up, and is elected again under
        load."""
        name = f"{self._topic}-{partition}"
        self._stage(f"producing without broker {leader}")
        self._producing.trickle = False
        without = total * 7 // 10
        self._until(lambda: self._ledger.sent >= without and len(self._ledger.acked) >= without)
        self._producing.trickle = True
        note_since = len(self._watch.notes)
        self._stage(f"broker {leader} starts again and catches up")
        self._cluster.start(leader)
        replicas = next(
            status.replicas
            for status in self._cluster.status().partitions
            if (status.topic, status.partition) == (self._topic, partition)
        )
        self._cluster.wait_for(
            isr=(self._topic, partition, len(replicas)), timeout_s=SEEN_TIMEOUT_S
        )
        self._stage(f"broker {leader} is elected leader of {name} under load")
        self._producing.trickle = False
        self._producing.allowed = total
        time.sleep(0.05)
        move_since, answer_since = len(self._watch.notes), len(self._watch.answers)
        if replicas[0] == leader:
            self._cluster.elect(self._topic, partition)
        else:
            self._cluster.move(self._topic, partition, leader)
        self._until(
            lambda: (
                self._all_answered()
                or (
                    self._watch.first_answer(is_refusal, answer_since) is not None
                    and self._watch.first_answer(is_ack_of(leader), answer_since) is not None
                )
            ),
            REFUSED_TIMEOUT_S,
        )
        moments = [
            self._note_moment(
                BrokerStarted, leader, "restarted", note_since, f"broker {leader}, with its old log"
            ),
            self._back_in_isr(leader, note_since),
        ]
        moments += took_over(
            self._watch, leader, (PRODUCER_ID, CONSUMER_ID), move_since, answer_since
        )
        return moments

    # ---------------------------------------------------------------------------------- moments

    def _note_moment(
        self, wanted: type[BrokerEvent], broker_id: int, label: str, since: int, text: str | None
    ) -> Moment:
        """Add the first event of this type about the broker; `text` None: the event's own words."""
        moment = self._watch.first_event(wanted, lambda event: event.broker == broker_id, since)
        if moment is None:
            return Moment(None, label, text or f"broker {broker_id}: not seen")
        return Moment(moment[0], label, text_of(moment[1]) if text is None else text)

    def _back_in_isr(self, broker_id: int, since: int) -> Moment:
        moment = self._watch.first_event(
            IsrExpanded,
            lambda event: self._watch.is_about_partition(event) and broker_id in event.isr,
            since,
        )
        label = "in sync"
        if moment is None:
            return Moment(None, label, f"broker {broker_id} did not come back into the ISR")
        return Moment(moment[0], label, sentence_of(moment[1]))

    def _all_answered(self) -> bool:
        """Whether all lines that may be sent have an outcome, so that nothing more will happen."""
        ledger = self._ledger
        answered = len(ledger.acked) + len(ledger.failed)
        return ledger.sent >= self._producing.allowed and answered >= ledger.sent

    def _until(self, condition: Callable[[], bool], timeout_s: float = SEEN_TIMEOUT_S) -> bool:
        """Wait for a condition; False if it does not hold in time.  The story then continues."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline or not self._consuming.is_alive():
                return False
            time.sleep(0.005)
        return True
