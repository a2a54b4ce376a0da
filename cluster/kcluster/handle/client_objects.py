"""The settings of Python's libraries that are objects: contexts of TLS, providers of tokens.

Owns: these objects.  Never: chooses a setting (security/client_settings.py does), makes a client.
Kafka: SslContext and OAuthBearerToken of kafka-python and aiokafka.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Final

from kcluster.security.client_settings import Code, Login, LoginFiles, Settings
from kcluster.security.sasl.oauthbearer import unsecured_token

TOKEN_LIFETIME_MS: Final = 3_600_000
_PROVIDERS_IN: Final = {
    "kafka-python": ("kafka.net.sasl.oauth", "kafka.sasl.oauth"),  # of 3.x, of 2.x
    "aiokafka": ("aiokafka.abc",),
}
"""Where each library has its AbstractTokenProvider."""


class UnsecuredToken:
    """A provider of unsecured tokens of a user, for kafka-python."""

    def __init__(self, user: str) -> None:
        self._user = user

    def token(self) -> str:
        """A new token."""
        return unsecured_token(self._user, round(time.time() * 1000), TOKEN_LIFETIME_MS)

    def extensions(self) -> dict[str, str]:
        """No SASL extensions."""
        return {}


class AsyncUnsecuredToken:
    """The same for aiokafka."""

    def __init__(self, user: str) -> None:
        self._provider = UnsecuredToken(user)

    async def token(self) -> str:
        """A new token."""
        return self._provider.token()

    def extensions(self) -> dict[str, str]:
        """No SASL extensions."""
        return {}


def with_objects(
    library: str, login: Login, settings: Settings, context: Callable[[LoginFiles], object]
) -> dict[str, object]:
    """The settings of a library, with objects instead of expressions where the library is
    Python's.  `context`: makes the context of TLS."""
    made: dict[str, object] = {
        name: value.text if isinstance(value, Code) else value for name, value in settings.items()
    }
    if "ssl_context" in made and login.files is not None:
        made["ssl_context"] = context(login.files)
    if "sasl_oauth_token_provider" in made:
        is_async, user = library == "aiokafka", login.user or ""
        provider = AsyncUnsecuredToken(user) if is_async else UnsecuredToken(user)
        _accept(library, type(provider))
        made["sasl_oauth_token_provider"] = provider
    return made


def _accept(library: str, provider: type) -> None:
    """Make the library take this class for a provider of its own, whose type it checks."""
    for name in _PROVIDERS_IN[library]:
        with suppress(ModuleNotFoundError):  # settings are no use without it, and no harm
            import_module(name).AbstractTokenProvider.register(provider)
