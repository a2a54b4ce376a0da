"""The scenario that `kcluster scenario new` writes: it runs as it is, and explains itself.

Owns: the text.  Never: writes a file.
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Final

SKELETON: Final = """\
# The leader of a partition dies under load, and comes back.
# Run it:      kcluster scenario run {file}
# All keys:    kcluster scenario help
# More files:  kcluster scenario list; kcluster scenario show acks_one_crash
story: |
  The leader of orders-0 is killed while a producer sends. Another broker takes over, and no acked
  record is lost.

topology:                       # kcluster scenario help topology
  brokers: 3
  profile: fast                 # Kafka's time constants divided by 100
  topics:
    orders: {{partitions: 1, replication_factor: 3, config: {{min.insync.replicas: 2}}}}

workload:                       # kcluster scenario help workload
  producers: {{topic: orders, name: shop, rate: 200/s, acks: all}}
  consumers: {{topics: orders, name: billing, group: billing}}

duration: 3s

steps:                          # kcluster scenario help steps; ... help actions; ... help kill
  - {{at: 500ms, kill: leader(orders-0), as: old}}      # `as` names the broker for later steps
  - {{when: isr(orders-0) = 2, within: 1s, wait: }}     # kcluster scenario help conditions
  - {{after: 300ms, start: old}}
  # - {{at: 2s, slow: {{nodes: 3, latency: 50ms}}, for: 500ms}}   # `for` undoes it

checks:                         # kcluster scenario help checks
  verdict: valid
  events: [leader_elected]
  at_end: [isr(orders-0) = 3]
  writes_unavailable: < 1s
"""


def skeleton(file: str) -> str:
    """The text of a new scenario file of this name."""
    return SKELETON.format(file=file)
