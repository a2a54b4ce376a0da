"""How clients come into a cluster: the settings of each library, with passwords.

Owns: this route.  Never: chooses a setting (handle/access.py does), logs an answer.
Kafka: the client.properties that an administrator hands out.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from kcluster.security.client_settings import SETTINGS_OF, Code, text_of
from kcluster.web.call import ApiCall
from kcluster.web.problems import wrong_value
from kcluster.web.routes import Runs, route


class AccessWanted(Struct):
    """Who comes in, and by which library."""

    library: Annotated[str, Meta(description=f"One of {', '.join(SETTINGS_OF)}.")] = "java"
    user: Annotated[
        str, Meta(description="The user; empty: nobody, or the first user of the topology.")
    ] = ""
    listener: Annotated[
        str, Meta(description="The listener; empty: the first that lets the user in.")
    ] = ""
    mechanism: Annotated[
        str, Meta(description="The mechanism of SASL; empty: the strongest that the user has.")
    ] = ""


class ClientConfig(Struct, frozen=True):
    """`settings`: names and values, where objects are expressions of the library's language;
    `text`: the same as its users write it."""

    library: str
    settings: dict[str, str | int | bool]
    text: str


@route(
    "GET",
    "/v1/clusters/<id>/client-config",
    query=AccessWanted,
    answer=ClientConfig,
    errors=(404, 409, 422),
    runs=Runs.AT_ONCE,
)
def show_client_config(call: ApiCall) -> ClientConfig:
    """The settings with which a client of a library comes in; they hold passwords."""
    wanted = call.query
    if wanted.library not in SETTINGS_OF:
        raise wrong_value("library", f"one of {', '.join(SETTINGS_OF)}")
    access = call.held.cluster.access
    settings = access.settings(
        wanted.library, wanted.user or None, wanted.listener or None, wanted.mechanism or None
    )
    return ClientConfig(
        wanted.library,
        {
            name: value.text if isinstance(value, Code) else value
            for name, value in settings.items()
        },
        text_of(wanted.library, settings),
    )
