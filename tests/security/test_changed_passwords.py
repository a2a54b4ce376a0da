"""The passwords that actions give to users."""

from __future__ import annotations

from kcluster.security.changed_passwords import ChangedPasswords


def test_passwords__the_newest_comes_first_also_when_it_was_given_before() -> None:
    passwords = ChangedPasswords()
    for password in ("a", "b", "a"):
        passwords.give("alice", password)
    assert passwords.of("alice") == ("a", "b")
    assert passwords.of("bob") == ()
