"""What takes input from strangers, by name.

Owns: the list.  Never: plays anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from tests.fuzz.episodes import Target
from tests.fuzz.targets.brokers import Brokers
from tests.fuzz.targets.http import Http
from tests.fuzz.targets.live import Live
from tests.fuzz.targets.logins import Logins
from tests.fuzz.targets.members import Members
from tests.fuzz.targets.proxied import Proxied
from tests.fuzz.targets.runs import Runs
from tests.fuzz.targets.tls import Tls

TARGETS: Final[dict[str, Callable[[], Target]]] = {
    "brokers": Brokers,
    "logins": Logins,
    "members": Members,
    "tls": Tls,
    "runs": Runs,
    "http": Http,
    "live": Live,
    "proxied": Proxied,
}


def smaller(step: Any) -> Iterable[Any]:
    """The step with less in it, the most first."""
    return step.smaller() if hasattr(step, "smaller") else ()
