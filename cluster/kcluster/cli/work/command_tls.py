"""The TLS of --command-config: which certificates a client trusts and shows.

Owns: the context of its connections; importing it needs the extra `security`.  Never: reads
properties that are not of TLS (command_config.py does).  Kafka: DefaultSslEngineFactory.
"""

from __future__ import annotations

import ssl

from kcluster.config.kafka.tls import NAME_CHECK, TlsTexts
from kcluster.drivers.tls.contexts import load_credentials
from kcluster.drivers.tls.credentials import certificates_pem
from kcluster.drivers.tls.listener_stores import TlsConfigError, open_stores
from kcluster.importing.tool_output import ToolText
from kcluster.principals import SecurityProtocol


def context_of(
    file: ToolText, places: dict[str, int], values: dict[str, str], protocol: SecurityProtocol
) -> ssl.SSLContext | None:
    """The context; None, with a problem at the property's place in the file, if a store cannot be
    used."""
    try:
        stores = open_stores(TlsTexts("", protocol, values, {}))
    except TlsConfigError as error:
        file.wrong(places.get(error.name, 1), 1, str(error))
        return None
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    if stores.trusted is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=certificates_pem(stores.trusted).decode())
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = bool(values.get(NAME_CHECK, "https").strip())
    if stores.credentials is not None:
        load_credentials(context, stores.credentials)
    return context
