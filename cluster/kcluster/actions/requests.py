"""The end of an administrator's request that an action sends.

Owns: what a refusal does to a run.  Never: sends a request (operations/admin.py does).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable

from kcluster.actions.stage import Stage


def refused(
    stage: Stage, what: str, then: Callable[[], None] | None = None
) -> Callable[[str], None]:
    """The callback for the end of a request: it fails the run if the request was refused, else
    calls `then`."""
    ended: list[bool] = []
    if then is None:
        stage.is_over_when(lambda: bool(ended))

    def on_end(refusal: str) -> None:
        ended.append(True)
        if refusal:
            stage.refuse(f"{what}: {refusal}")
        elif then is not None:
            then()

    return on_end
