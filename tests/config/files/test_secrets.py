"""Which values of a file are hidden where it is written down."""

from __future__ import annotations

from kcluster.config.files.secrets import text_without_secrets


def test_secrets__equal_ones_are_hidden_alike_and_the_rest_stays() -> None:
    text = """\
topology:  # the password is alice-secret: comments are the author's own
  security:
    tls: {keystore: b.p12, keystore_password: "store: secret"}
    users: {alice: alice-secret, bob: {password: 'bob-secret', mechanisms: [PLAIN]}}
  config:
    listener.name.x.plain.sasl.jaas.config: >
      Plain required
      user_a="x";
    num.partitions: 3
steps:
  - {at: 3s, password: {user: alice, to: new-secret}}
  - {at: 4s, password: {user: alice, to: alice-secret}}
"""
    assert (
        text_without_secrets(text)
        == """\
topology:  # the password is alice-secret: comments are the author's own
  security:
    tls: {keystore: b.p12, keystore_password: hidden-1}
    users: {alice: hidden-2, bob: {password: hidden-3, mechanisms: [PLAIN]}}
  config:
    listener.name.x.plain.sasl.jaas.config: hidden-4
    num.partitions: 3
steps:
  - {at: 3s, password: {user: alice, to: hidden-5}}
  - {at: 4s, password: {user: alice, to: hidden-2}}
"""
    )


def test_secrets__a_text_without_any_is_left_as_it_is() -> None:
    text = "brokers: 3\ntopics: {users: {partitions: 3}}\n"
    assert text_without_secrets(text) == text
    assert text_without_secrets("") == ""
