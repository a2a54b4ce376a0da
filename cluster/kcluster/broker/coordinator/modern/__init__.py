"""The common part of groups with epochs: consumer (KIP-848), share (KIP-932), streams (KIP-1071).

Owns: the shape below.  Never: knows a kind.  Kafka: coordinator.group.modern.

Such a group is the sum of its records.  Nothing changes it but `replay` of a record, when the log
is loaded and when a record has just been appended.  A request is therefore handled in two steps:

    decide   on the group as it is: RequestRefused, or a CoordinatorResult with records and answer
    write    the records in one batch (LogShard.write); then they are replayed, the effects of the
             decision follow, and the answer is sent when they are committed.  Nothing to write:
             the answer waits for what has been written before

A write that is refused has changed nothing.  A write that the log loses is lost with the
leadership: the next leader loads the rest of the log.  Timers are the only other state.

    epoch             increases when subscriptions, members or the topics' partitions change
    target            the assignment that the group moves to, with the epoch that it was made for
    members           each with its partitions, and the epoch of the target that it has reached

group.py: ModernGroup, for a kind to extend; partition_group.py: one that assigns partitions.
heartbeat.py: the steps of a heartbeat in every kind.  records.py: the records of all kinds.
topics.py: the topics' metadata for these groups.  configs.py: a group's own configs.  refusals.py:
the refusals of a heartbeat.

A new kind adds a package: its member, its group, its heartbeat; and its records in records.py, rows
in group_kinds.py, and a handler.
"""
