"""The anomalies of a run.  Importing this package registers all of them; the order of these imports
is the order in which a verdict lists them."""

# isort: off
from kcluster.checks.anomalies import lost_write as lost_write
from kcluster.checks.anomalies import duplicate as duplicate
from kcluster.checks.anomalies import nonmonotonic_send as nonmonotonic_send
from kcluster.checks.anomalies import inconsistent_offsets as inconsistent_offsets
from kcluster.checks.anomalies import aborted_read as aborted_read
from kcluster.checks.anomalies import torn_transaction as torn_transaction
from kcluster.checks.anomalies import swapped_transaction as swapped_transaction
from kcluster.checks.anomalies import hanging_transaction as hanging_transaction
from kcluster.checks.anomalies import stuck_transaction as stuck_transaction
from kcluster.checks.anomalies import processed_twice as processed_twice
from kcluster.checks.anomalies import never_processed as never_processed
from kcluster.checks.anomalies import phantom as phantom
from kcluster.checks.anomalies import poll_skip as poll_skip
from kcluster.checks.anomalies import nonmonotonic_poll as nonmonotonic_poll
from kcluster.checks.anomalies import unseen as unseen
from kcluster.checks.anomalies import committed_offset_back as committed_offset_back
from kcluster.checks.anomalies import owned_twice as owned_twice
from kcluster.checks.anomalies import unsettled_group as unsettled_group
from kcluster.checks.anomalies import stuck_offline as stuck_offline
from kcluster.checks.anomalies import delivered_after_ack as delivered_after_ack
from kcluster.checks.anomalies import delivered_too_often as delivered_too_often
from kcluster.checks.anomalies import accepted_twice as accepted_twice
from kcluster.checks.anomalies import passed_over as passed_over
# isort: on

from kcluster.checks.anomalies.base import ANOMALIES, Anomaly
from kcluster.checks.anomalies.search import anomalies_of_sends, explained, find_anomalies

__all__ = ["ANOMALIES", "Anomaly", "anomalies_of_sends", "explained", "find_anomalies"]
