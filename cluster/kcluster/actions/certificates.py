"""Actions on the certificates of brokers.

Owns: these actions.  Never: makes a certificate (drivers/tls/ does).
Kafka: kafka-configs.sh --alter with ssl.keystore.location; a certificate that nobody renewed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from kcluster.actions.base import Action, action
from kcluster.actions.kinds import BROKERS
from kcluster.actions.menu import MenuItem
from kcluster.actions.recording import Recording, these
from kcluster.actions.stage import Stage, Undo
from kcluster.config.files.fields import OneOf
from kcluster.events.brokers import CertificateReplaced
from kcluster.operations.targets import Targets
from kcluster.operations.verbs import Verbs
from kcluster.security.certificates import CertificateState


@action("certificate", short="brokers", example="certificate: {brokers: 2, state: expired}")
class Certificate(Action, frozen=True):
    """Replace brokers' certificates, for new connections; open ones go on.  For listeners with TLS
    whose certificates are made (`security: {tls: auto}`).  Undone by a valid certificate."""

    MENU = (
        MenuItem("broker", "Let its certificate expire", "{broker}", ("up",), needs="certificates"),
        MenuItem(
            "broker",
            "Renew its certificate",
            {"brokers": "{broker}", "state": CertificateState.VALID.value},
            ("up",),
            needs="certificates",
        ),
    )
    brokers: Annotated[Targets, BROKERS, "The brokers."]
    state: Annotated[
        str,
        OneOf("state of a certificate", tuple(CertificateState)),
        "valid: a new one of the same CA.  Clients refuse the others: one that has expired, or one"
        " for another host name.",
    ] = CertificateState.EXPIRED.value

    def affected(self, stage: Stage) -> tuple[int, ...]:
        return stage.nodes(self.brokers)

    def do(self, stage: Stage) -> Undo | None:
        chosen, state = stage.nodes(self.brokers), CertificateState(self.state)
        for broker_id in chosen:
            stage.verbs.replace_certificate(broker_id, state)
        if state is CertificateState.VALID:
            return None

        def undo() -> None:
            for broker_id in chosen:
                stage.verbs.replace_certificate(broker_id, CertificateState.VALID)

        return undo

    RECORDED_FROM = (CertificateReplaced,)

    @classmethod
    def record(cls, event: CertificateReplaced, recording: Recording) -> None:
        def is_undone(was: object) -> bool:
            return (
                isinstance(was, CertificateReplaced)
                and was.broker == event.broker
                and was.state is not CertificateState.VALID
            )

        if event.state is not CertificateState.VALID or not recording.undo(is_undone):
            recording.add(cls(these([event.broker]), event.state.value), event)

    @classmethod
    def repair(cls, verbs: Verbs) -> Iterator[str]:
        for broker_id in verbs.renew_certificates():
            yield f"the certificate of broker {broker_id}"
