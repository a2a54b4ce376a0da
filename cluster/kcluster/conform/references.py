"""The releases of Apache Kafka that ours is compared with: each has recorded answers.

Owns: the list, the versions that each release serves.  Never: starts one (systems.py), reads
recordings (recorded.py).
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.protocol.apis import APIS, VERSIONS, ApiKey
from kcluster.protocol.codec.schema import NEVER, Versions
from kcluster.protocol.releases import Release, releases


class Reference(Struct, frozen=True):
    """One release.  `version`: the patch of it that was asked, such as `4.3.1`."""

    name: str
    """As in topology files: `kafka_version: 4.3`."""
    version: str

    @property
    def release(self) -> Release:
        return releases()[self.name]

    def served(self, api: ApiKey) -> Versions:
        """Inclusive bounds of the versions that its brokers list and serve; NEVER if none.  Of an
        API that is the controllers' own: the newest release's."""
        listed = self.release.listed.get(api)
        if listed is None:
            if api in NEWEST.release.listed:
                return NEVER
            return VERSIONS[api][0], VERSIONS[api][1] - APIS[api].is_latest_unstable
        # Produce lists versions that it does not serve (KAFKA-18659).
        return max(listed[0], VERSIONS[api][0]), listed[1]

    def newest(self, api: ApiKey) -> int:
        """The newest version that its brokers serve."""
        return self.served(api)[1]


NEWEST: Final = Reference("4.4", "4.4.0")
"""What our brokers answer like unless a topology names another release."""
REFERENCES: Final = (NEWEST, Reference("4.3", "4.3.1"))
