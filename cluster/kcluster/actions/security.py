"""The actions of a security administrator: passwords, ACLs.

Owns: these actions.  Never: sends the requests (operations/admin.py), shows a password.
Kafka: kafka-configs, kafka-acls.

A refusal by the controller fails the run, with the controller's message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from kcluster.actions.base import Action, action
from kcluster.actions.requests import refused
from kcluster.actions.stage import Stage, Undo
from kcluster.config.files.fields import text
from kcluster.config.topology.acl_checks import acl_problem, acls_of
from kcluster.config.topology.acl_keys import AclKeys
from kcluster.config.topology.security_keys import Password
from kcluster.operations.errors import ClusterError
from kcluster.security.acls import Acl
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
        stage.plan.passwords.give(self.user, self.to)
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


class _AclAction(Action, AclKeys, frozen=True, kw_only=True):
    """An ACL as in a topology."""

    IS_FAULT = False

    def problems(self) -> Iterator[tuple[str, str]]:
        problem = acl_problem(self)
        if problem is not None:
            yield problem

    def _acls(self, stage: Stage) -> list[Acl]:
        if not stage.plan.topology.security.authorization.is_enabled:
            raise ClusterError("no broker has an authorizer; set security: {authorizer: true}")
        return list(acls_of(self))


@action("acl", example="acl: {deny: alice, to: write, topic: orders}")
class AddAcl(_AclAction, frozen=True, kw_only=True):
    """Add an ACL, with the keys of a topology's.  Undone by removing it, unless it was there."""

    def do(self, stage: Stage) -> Undo:
        acls, admin = self._acls(stage), stage.verbs.admin
        known = set(stage.verbs.settled.image.acls.by_id.values())
        added = [acl for acl in acls if acl not in known]
        admin.create_acls(added, refused(stage, "acl"))
        return lambda: admin.delete_acls(added, refused(stage, "acl back"))


@action("remove_acl", example="remove_acl: {allow: alice, to: write, topic: orders}")
class RemoveAcl(_AclAction, frozen=True, kw_only=True):
    """Remove an ACL, named by the keys with which a topology has it.  Undone by adding it again."""

    def do(self, stage: Stage) -> Undo:
        acls, admin = self._acls(stage), stage.verbs.admin
        known = set(stage.verbs.settled.image.acls.by_id.values())
        removed = [acl for acl in acls if acl in known]
        if not removed:
            raise ClusterError("there is no such ACL")
        admin.delete_acls(removed, refused(stage, "remove_acl"))
        return lambda: admin.create_acls(removed, refused(stage, "remove_acl back"))
