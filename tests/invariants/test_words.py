"""The words for what was observed where an invariant is broken: each kind has some."""

import pytest

from kcluster.invariants import facts as f
from kcluster.invariants import group_facts as g
from kcluster.invariants import producer_facts as p
from kcluster.invariants.violations import Violation
from kcluster.invariants.words import observed_text

END = p.ProducerEnd(3, 7, 9)
TEXTS = [
    (f.WentBack(f.Measure.LOG_END, 9, 5), "log end 9 -> 5"),
    (
        f.OutOfBounds(f.Measure.ACKED, 7, f.Measure.COMMITTED_END, 5),
        "acked offset 7, committed up to 5",
    ),
    (f.Outdated(f.Measure.BROKER_EPOCH, 4, 7), "broker epoch 4 was named, 7 was current"),
    (
        f.MemberBehind(2, (1, 2), 5, f.Measure.HIGH_WATERMARK, 7),
        "broker 2 of the ISR [1, 2] ends at 5, watermark 7",
    ),
    (f.Misplaced((3,), f.Fault.NO_REPLICA, (1, 2)), "[3] are not among [1, 2]"),
    (f.LeaderOutside(3, (1, 2)), "leader 3, ISR [1, 2]"),
    (f.LeaderOutside(3, (1,), (2,)), "leader 3, ISR and ELR were [1, 2]"),
    (f.LeaderReplaced(1, 2, 5), "leader 1 -> 2, epoch 5"),
    (f.LedBefore(5, 1, 2), "epoch 5 was led by broker 1, life 2"),
    (f.BeganWithout(5, 9), "epoch 5 begins without what is committed from 9 on"),
    (f.RecordDiffers(4, 2, 1), "offset 4 is of epoch 2 here, of epoch 1 where it was committed"),
    (f.RecordDiffers(4, 2, 1, 3), "offset 4 is of epoch 2 here, of epoch 1 on broker 3 at the end"),
    (
        p.ProducerDiffers(8, p.ProducerEnd(3), END),
        "producer 8: the table has epoch 3 without batches, the log epoch 3, sequences up to 7 at"
        " offset 9",
    ),
    (
        p.ProducerDiffers(8, END, None),
        "producer 8: the table has epoch 3, sequences up to 7 at offset 9, the log none of it",
    ),
    (
        p.TransactionDiffers(8, None, p.TransactionSpan(4)),
        "producer 8: the table has none, the log one open since offset 4",
    ),
    (
        p.TransactionDiffers(8, p.TransactionSpan(4, 9), None),
        "producer 8: the table has one from 4, aborted at 9, the log none",
    ),
    (f.EpochDiffers(4, 1, 2), "offset 4 is of epoch 2, of epoch 1 in the cache of epochs"),
    (f.ProgressKept(2, 9), "broker 2 is known to end at 9, but it has not fetched in this epoch"),
    (
        f.HeldBack(9),
        "it may not shut down, though it leads nothing and all active brokers know the metadata up"
        " to 9",
    ),
    (f.Silent(100, 2_900), "no heartbeat for 2800 ms, and it is not fenced"),
    (f.LogLeft(b"t" * 16, 1), "partition 1 of topic id 74747474"),
    (f.BatchAltered(4, "leader epoch"), "the batch at offset 4 has another leader epoch"),
    (f.NewestRemoved(4, 1), "the newest record of its key is gone: offset 4"),
    (f.NewestRemoved(4, 3), "the newest record of its key is gone: offset 4 and 2 more"),
    (
        p.VerifiedOtherwise(7, 3, "orders", 1, ""),
        "orders-1 was verified for producer 7, epoch 3, which has no open transaction there; it is"
        " unknown",
    ),
    (
        p.ZombieServed("EndTxn", 7, 3, 5),
        "EndTxn of producer 7, epoch 3, was served, after epoch 5 had begun anew",
    ),
    (g.Unmatched("fees", "fees|bills"), "fees matches fees|bills, and the group has not found it"),
    (
        g.CommitRefused("a-1", 4, 0, 3, 6),
        "a commit of a-1 with member epoch 4 of 6 was refused, though it has partition 0 since 3",
    ),
    (g.StateKept(4, 9), "offsets 4 to 9 have a state from before"),
    (
        p.SequenceGap(7, 2, 5, 3, 9),
        "the batch at offset 9 of producer 7, epoch 2, has sequence 5, where 3 is due",
    ),
    (p.SequenceRemoved(7, 3, 4), "the last batch of producer 7 is gone: sequence 3 at offset 4"),
    (f.OlderKept(4, 2), "an older record of its key is still there: offset 4 and 1 more"),
    (
        p.RefusedProducer("EndTxn", 7, 3, "INVALID_TXN_STATE", "CompleteCommit", 4),
        "INVALID_TXN_STATE to EndTxn of producer 7, epoch 3; its transaction is CompleteCommit,"
        " epoch 4",
    ),
    (
        g.OffsetGiven("g", "orders", 0, 5, 2, "", is_deleted=False),
        "offset 5, leader epoch 2 of orders-0 of group g was given, which was never committed",
    ),
    (
        g.OffsetGiven("g", "orders", 0, 5, 2, "x", is_deleted=True),
        "offset 5, leader epoch 2 and metadata 'x' of orders-0 of group g was given, which was"
        " deleted",
    ),
    (g.GroupWentBack(f.Measure.GENERATION, 5, 4), "generation 5 -> 4"),
    (g.GroupWentBack(f.Measure.MEMBER_EPOCH, 5, 4, "a-1"), "member epoch of a-1 5 -> 4"),
    (g.AssignedTwice("a-1", 5), "a-1 got two assignments in generation 5"),
    (
        g.StaleCommit("a-1", 5, "b-1", 6),
        "a commit of a-1 in generation 5, after one of b-1 in generation 6",
    ),
    (
        g.StaleRequest("Heartbeat", "a-1", f.Measure.GENERATION, 5, 6),
        "Heartbeat of a-1 with generation 5 was served, after 6 had begun",
    ),
    (
        g.StaleRequest("Heartbeat", "a-1", f.Measure.GENERATION, 5, -1),
        "Heartbeat of a-1 with generation 5 was served, after it had left",
    ),
    (
        g.GivenAway("a-1", 5, 0, "b-1", 6),
        "a commit of a-1 with member epoch 5, after b-1 had partition 0 in epoch 6",
    ),
    (p.ReadOfAborted(4, 8, 9), "offset 4 was delivered, which producer 8 aborted at 9"),
    (g.StateKept(3, 7), "offsets 3 to 7 have a state from before"),
    (g.HeldBy("a-1", "b-1", 7), "a-1 had offset 7, while b-1 held it"),
    (
        g.NotLoaded(3, 7),
        "offset 7 was delivered by a leader that has not loaded the state since epoch 3 began",
    ),
    (g.Locked(7, 1_500, 1_000, "a-1"), "a-1 lost its lock on offset 7, 500 ms before its end"),
    (g.Locked(7, 1_500, 3_500), "offset 7 is still acquired, 2000 ms after the end of its lock"),
    (
        g.PassedUnsettled("packing", 0, 7),
        "the start offset of group packing, partition 0 has passed offset 7, not settled",
    ),
    (
        g.StatePruned("packing", 0, 7, 9),
        "the snapshot of group packing, partition 0 was at 7, the log starts at 9",
    ),
    (g.Idle("a-1", 5), "a-1 has no partition in the assignment of epoch 5, though others have"),
    (
        f.SegmentDiffers(7, "timestamp", 100, 900),
        "the segment of offset 7 has timestamp 100, its batches 900",
    ),
    (
        f.CleanedTooYoung(7, 100, 900),
        "the batch at offset 7 was cleaned at an age of 100 ms; min.compaction.lag.ms is 900",
    ),
    (g.NotAsked("a-1", 7), "a-1 got offset 7 of a partition that it does not fetch"),
    (g.PlaceLost("a-1"), "a-1 lost its place, though it had not left and was not removed"),
    (
        g.NoRebalance("a-1", g.Rejoined.CHANGED, 7),
        "a-1 joined with another subscription, and got the old generation 7",
    ),
    (
        g.Overdue("Heartbeat", "a-1", "b-1", g.Duty.SYNC, 100, 900),
        "Heartbeat of a-1 was served, though b-1 had not synced for 800 ms",
    ),
    (
        p.FencedAlone(7, 2, "PRODUCER_FENCED"),
        "PRODUCER_FENCED to producer 7, epoch 2, whose transactional id no other producer has",
    ),
    (
        p.GivenTwice(7, "transaction shop", "request 3 of connection 9"),
        "producer id 7 was given to transaction shop and to request 3 of connection 9",
    ),
    (
        f.NotPreferred(1, 2, 100, 900),
        "broker 2 led for 800 ms, though the preferred leader 1 was in sync and active",
    ),
    (
        f.Muted("ProduceRequest", 4, 900),
        "ProduceRequest of connection 4 was answered, though it was muted until 900 ms",
    ),
    (
        g.OffsetLeft("billing", "orders", 1, 7),
        "group billing has offset 7 of orders-1, whose topic is deleted",
    ),
    (
        g.PendingExpired("billing", "orders", 1, 7),
        "the offset of orders-1 of group billing was deleted, while a transaction had offset 7"
        " open",
    ),
    (
        p.ForgottenTransaction("shop", 7, 2, "PrepareCommit"),
        "transaction shop was deleted in state PrepareCommit (producer 7, epoch 2)",
    ),
    (
        p.TimeoutOutdated(7, 2, 5000, 900),
        "producer 7, epoch 2 asked for 5000 ms; 900 ms are in force",
    ),
    (f.SentOutside(3, (1, 2)), "a consumer was sent to broker 3; the ISR is [1, 2]"),
    (f.UnexpectedError("Produce", "NOT_COORDINATOR"), "Produce was answered NOT_COORDINATOR"),
    (f.AnsweredTwice(6, 4), "request 6 of connection 4"),
    (
        p.ProducerWentBack(7, f.Measure.PRODUCER_EPOCH, 3, 2, 9),
        "producer 7: producer epoch 3 -> 2 at offset 9",
    ),
    (
        p.MarkerStrays(7, 3, False, 2, 9),
        "abort marker of producer 7 (epoch 3, coordinator epoch 2) at offset 9",
    ),
    (
        p.EarlyMarker(7, 3, True, 5),
        "the commit marker of producer 7, epoch 3, was confirmed; it is not committed up to 5",
    ),
    (
        p.UnverifiedBatch(7, 3, 9, ""),
        "a transaction of producer 7, epoch 3, begins at offset 9; at its coordinator it is"
        " unknown",
    ),
    (
        f.HeldDiffers("transaction shop", "state", "1", "4"),
        "state of transaction shop: 1 in memory, 4 in the log",
    ),
    (
        f.HeldDiffers("transaction shop", "", "", "Ongoing"),
        "transaction shop: nothing in memory, Ongoing in the log",
    ),
    (
        p.OtherwiseEnded(True, 3, "CompleteAbort"),
        "the commit in epoch 3 was confirmed; it is CompleteAbort",
    ),
    (
        g.UnstableRead("billing", "orders", 0, 7),
        "offset 7 of orders-0 of group billing was given, which an open transaction may change",
    ),
    (
        f.AnswerDiffers("brokers in Metadata", "3", ""),
        "brokers in Metadata: 3 is given, nothing is due",
    ),
    (
        f.TimeDiffers(4, 900, 800),
        "the segment at offset 4 has 900 as newest time, its records have 800",
    ),
    (
        f.LeftInSync(2, (1, 2), 100, 140),
        "broker 2 was to leave the ISR [1, 2], though it had every record 40 ms before",
    ),
    (
        f.KeptLaggard(2, (1, 2), 7, 100, 900),
        "broker 2 stayed in the ISR [1, 2], though it lacked the records from 7 on for 800 ms",
    ),
    (f.OutlivedElr(3, (), 1), "last known leader is 3, though 1 leads"),
    (f.OutlivedElr(3, (1, 2)), "last known leader 3 was elected, though [1, 2] were eligible"),
    (
        g.RemovedEarly("a-1", "session", 900, 700),
        "a-1 was removed (session), 200 ms before it was late",
    ),
    (
        g.RemovedWaiting("a", "session", "JoinGroup", 100, 900),
        "a was removed (session), though its JoinGroup had waited for 800 ms",
    ),
    (
        g.GivenTogether("a", 5, 3, 4),
        "a got offset 5 for the last time (3), and 3 more records with it",
    ),
    (
        g.Dropped(2, 7, is_classic=True),
        "the group became a classic group in generation 7, and no member has partition 2 any more",
    ),
    (
        g.Dropped(2, 7, is_classic=False),
        "the group became a group with epochs in generation 7, and no member has partition 2 any"
        " more",
    ),
    (
        f.DeletedEarly(4, 300, 5_000, 900, -1),
        "offset 4 was deleted at an age of 300 ms, with 5000 bytes after it; retention.ms is 900,"
        " retention.bytes is -1",
    ),
    (
        f.DeletedAgain(7, 3),
        "the log of its leader begins at 3, though the records before 7 were deleted",
    ),
    (
        f.RegisteredEarly(100, 700, 2_000),
        "a process was registered 600 ms after a heartbeat of the process before it; a session"
        " lasts 2000 ms",
    ),
    (
        f.LeaderDenied("NOT_LEADER_OR_FOLLOWER", 4),
        "a fetch got NOT_LEADER_OR_FOLLOWER from the leader of epoch 4",
    ),
    (g.StateKept(3, 5), "offsets 3 to 5 have a state from before"),
    (g.SessionLost("a-1"), "a-1 lost its share session, though its connection was open"),
    (f.KeptBack(3, 9), "a fetch from 3 on got nothing; readable up to 9"),
    (f.StoppedUnfenced(12), "it was told to shut down, and is not fenced in broker epoch 12"),
    (f.StartBehind(3, 0, 20), "the log of follower 3 begins at 0, its leader's at 20"),
    (f.EndCompacted(6, 7), "the batch at 6 is gone, which ended at high watermark 7"),
    (
        f.NotCleaned(6, 3_000, 900),
        "the batch at 6 is 3000 ms old and was not cleaned; max.compaction.lag.ms is 900",
    ),
    (f.KeptSegment(4, 100, 900), "the segment at offset 4 was due for 800 ms, and is still there"),
    (
        f.HeldDeletion(7),
        "every live replica has deleted the records before 7, but DeleteRecords still waits",
    ),
    (
        g.ToldUncommitted("SyncGroup", "a-1", f.Measure.GENERATION, 5, 4),
        "SyncGroup of a-1 was answered with generation 5, and 4 is committed",
    ),
    (
        g.ToldUncommitted("ShareGroupHeartbeat", "a-1", f.Measure.MEMBER_EPOCH, 1, 0),
        "ShareGroupHeartbeat of a-1 was answered with member epoch 1, and none is committed",
    ),
    (f.Unanswered("FetchRequest", 20), "FetchRequest of 20 ms"),
    (
        f.Stall("orders", 1, 5, 7, 9, 100, 8_100),
        "watermark 7 of leader 1 stood still for 8000 ms; its log ends at 9",
    ),
    (
        p.OverdueTransaction("shop", 7, 3, 2, True, 100, 900),
        "transaction shop (producer 7, epoch 3) was decided, without its markers, for 800 ms",
    ),
    (f.TimeStoodStill("node 1 got Fetch 9 times"), "node 1 got Fetch 9 times"),
]


@pytest.mark.parametrize(("fact", "text"), TEXTS, ids=[type(fact).__name__ for fact, _ in TEXTS])
def test_words__of_each_fact(fact: f.Observed, text: str) -> None:
    assert observed_text(fact) == text
    found = Violation("epoch-back", 5, "orders-0", fact)
    assert str(found) == f"epoch-back at 5 ms: orders-0: {text}"


def test_words__no_fact_is_without() -> None:
    assert set(f.Observed.__subclasses__()) == {type(fact) for fact, _ in TEXTS}
