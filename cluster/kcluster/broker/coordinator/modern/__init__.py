"""What groups with epochs have in common: consumer (KIP-848), share (KIP-932), streams (KIP-1071).

Owns: the shape below.  Never: knows one of the kinds.  Kafka: coordinator.group.modern.

Such a group is the sum of its records.  Nothing changes it but `replay` of a record, when the log
is loaded and when a record has just been appended.  A request is therefore handled in two steps:

    decide   on the group as it is: RequestRefused, or a CoordinatorResult with records and answer
    write    the records in one batch (LogShard.write); then they are replayed, the effects of the
             decision follow, and the answer is sent when they are committed.  Nothing to write:
             the answer waits for what has been written before

A write that is refused has changed nothing.  A write that the log loses is lost with the
leadership: the next leader loads what the log has kept.  Only timers are set besides.

    epoch             increases when subscriptions, members or the topics' partitions change
    target            the assignment that the group moves to, with the epoch that it was made for
    members           each with its own epoch: that of the target it has reached, and its partitions

group.py: ModernGroup, for a kind to extend; partition_group.py: one that assigns partitions.
heartbeat.py: what a heartbeat is in every kind.  records.py: the form of the records.  topics.py:
the topics' metadata as these groups see it.  configs.py: a group's own configs.  refusals.py: why a
heartbeat is refused.

A kind to come adds a package: its records (with READERS), its member, its group, its heartbeat; and
a row in group_records.py, rows in group_kinds.py, and a handler.
"""
