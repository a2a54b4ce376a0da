"""The actions of a security administrator: passwords.

Owns: these actions.  Never: sends the requests (operations/admin.py), shows a password.
Kafka: kafka-configs.

A refusal by the controller fails the run, with the controller's message.
"""

from __future__ import annotations

from typing import Annotated

from kcluster.actions.base import Action, action
from kcluster.actions.requests import refused
from kcluster.actions.stage import Stage, Undo
from kcluster.config.files.fields import text
from kcluster.config.topology.security_keys import Password
from kcluster.security.sasl.mechanisms import SCRAM_CODES


@action("password", example="password: {user: alice, to: another-secret}")
class ChangePassword(Action, frozen=True):
    """Change a user's password for SCRAM, or add the user.  Clients keep the passwords with which
    they were started.  Undone by restoring the password of the topology, or removing the user."""

    IS_FAULT = False
    user: Annotated[str, text(), "The user."]
    to: Annotated[str, Password(), "The new password."]

    def __repr__(self) -> str:
        return f"ChangePassword({self.user!r})"

    def do(self, stage: Stage) -> Undo:
        admin, rng = stage.verbs.admin, stage.rng
        users = {user.name: user for user in stage.plan.topology.security.users}
        known = stage.verbs.settled.image.scram_credentials
        had = [name for name, code in SCRAM_CODES.items() if (self.user, code) in known]
        changed = had or list(SCRAM_CODES)
        for mechanism in changed:
            on_end = refused(stage, f"password of {self.user}")
            admin.set_password(self.user, self.to, mechanism, rng, on_end)

        def undo() -> None:
            for mechanism in changed:
                on_end = refused(stage, f"password of {self.user} back")
                if self.user in users and had:
                    password = users[self.user].password
                    admin.set_password(self.user, password, mechanism, rng, on_end)
                else:
                    admin.remove_password(self.user, mechanism, on_end)

        return undo
