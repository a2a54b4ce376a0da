"""The words for what a Note can tell.

Owns: the vocabulary.  Never: how a note is shown (render.py).

One word per kind of change, in the past tense; everything that filters notes uses these names.
"""

from __future__ import annotations

from typing import Final

BROKER_STARTED: Final = "broker_started"
BROKER_DOWN: Final = "broker_down"  # its process went: kill, power, wipe, clean (data: how)
BROKER_READDRESSED: Final = "broker_readdressed"  # data: broker, host, port
DISK_FULL: Final = "disk_full"
BROKER_PAUSED: Final = "broker_paused"
BROKER_RESUMED: Final = "broker_resumed"
BROKER_REGISTERED: Final = "broker_registered"
BROKER_FENCED: Final = "broker_fenced"
BROKER_UNFENCED: Final = "broker_unfenced"
CONTROLLED_SHUTDOWN: Final = "controlled_shutdown"
CONTROLLER_DOWN: Final = "controller_down"
CONTROLLER_ELECTED: Final = "controller_elected"  # data: epoch, leader
TOPIC_CREATED: Final = "topic_created"
TOPIC_DELETED: Final = "topic_deleted"
PARTITIONS_ADDED: Final = "partitions_added"
CONFIG_CHANGED: Final = "config_changed"
FEATURE_CHANGED: Final = "feature_changed"  # data: feature, old, new
LEADER_ELECTED: Final = "leader_elected"  # data: topic, partition, old, new, epoch, clean
PARTITION_OFFLINE: Final = "partition_offline"
REASSIGNMENT_STARTED: Final = "reassignment_started"  # data: topic, partition, replicas, …
REASSIGNMENT_COMPLETED: Final = "reassignment_completed"
REASSIGNMENT_CANCELLED: Final = "reassignment_cancelled"
ISR_SHRUNK: Final = "isr_shrunk"  # data: topic, partition, isr, removed
ISR_EXPANDED: Final = "isr_expanded"  # data: topic, partition, isr, added
BECAME_LEADER: Final = "became_leader"  # data: topic, partition, epoch, offset: its log end then
BECAME_FOLLOWER: Final = "became_follower"
LOG_TRUNCATED: Final = "log_truncated"  # data: topic, partition, from_offset, to_offset
RECORDS_LOST: Final = "records_lost"  # power loss or wipe took an unflushed tail
CLIENT_THROTTLED: Final = "client_throttled"  # data: quota; told once, until it is within it
TELEMETRY_PUSHED: Final = "telemetry_pushed"  # data: client_instance_id, size_bytes, pushes
GROUP_REBALANCED: Final = "group_rebalanced"
GROUP_MEMBER_EXPIRED: Final = "group_member_expired"
RULE_ADDED: Final = "rule_added"  # of protocol faults; data: rule, effect
RULE_HIT: Final = "rule_hit"  # data: rule, api, client, broker, effect, connection, hit
RULE_REMOVED: Final = "rule_removed"  # data: rule, hits, calls
LINK_CUT: Final = "link_cut"
LINK_HEALED: Final = "link_healed"
LINK_RESET: Final = "link_reset"  # loss beyond what TCP mends; data: source, to
NETWORK_CUT: Final = "network_cut"  # a set from a set; data: nodes, others, one_way, links, sides
NETWORK_HEALED: Final = "network_healed"  # data: links, sides
NETWORK_SHAPED: Final = "network_shaped"  # latency, jitter, loss, bandwidth
