"""The text of a file without its passwords and keys, for what is written down.

Owns: the keys whose values are secrets.  Never: reads a file, checks one.
Kafka: ConfigDef.Type.PASSWORD.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import yaml

SECURITY: Final = "security"
USERS: Final = "users"
PASSWORD: Final = "password"
NEW_PASSWORD: Final = "to"
"""The key of the new password in the action `password`."""
_ENDINGS: Final = (PASSWORD, "jaas.config", "keystore.key", "secret.key")
"""The ends of names of configs that are secrets, with dots or underscores."""
_HINTS: Final = (SECURITY, PASSWORD, "jaas", "key")
"""A text without any of these words has no secrets."""


def text_without_secrets(text: str) -> str:
    """A valid YAML text in which each secret is `hidden-1`, `hidden-2`, …: equal ones alike, so
    that a run of the text is the same."""
    if not any(word in text for word in _HINTS):
        return text
    hidden: dict[str, str] = {}
    parts, end = [], 0
    for secret in _secrets(yaml.compose(text, Loader=yaml.SafeLoader), ()):
        name = hidden.setdefault(secret.value, f"hidden-{len(hidden) + 1}")
        parts += [text[end : secret.start_mark.index], name]
        # A folded text ends with the line break before the next key.
        end = secret.start_mark.index
        end += len(text[end : secret.end_mark.index].rstrip())
    return "".join((*parts, text[end:]))


def _secrets(node: yaml.Node | None, path: tuple[str, ...]) -> Iterator[yaml.ScalarNode]:
    """The scalars that are secrets, in order.  `path`: the keys that lead to the node."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _secrets(item, path)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _secrets(value, (*path, str(key.value)))
    elif isinstance(node, yaml.ScalarNode) and node.value and _is_secret(path):
        yield node


def _is_secret(path: tuple[str, ...]) -> bool:
    if path[-1:] == (NEW_PASSWORD,):
        return path[-2:-1] == (PASSWORD,)
    if path[-3:-1] == (SECURITY, USERS):
        return True
    return bool(path) and path[-1].replace("_", ".").endswith(_ENDINGS)
