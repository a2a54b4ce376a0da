"""The settings by which a client of each library logs in: Java, librdkafka, kafka-python, aiokafka,
franz-go, kafkajs.

Owns: the names and forms of these settings.  Never: makes a certificate or a password, reads a
file, imports a client.
Kafka: CommonClientConfigs, SaslConfigs, SslConfigs; the libraries' own documentation.

Settings are values: text, numbers, or `Code`, for what a library takes as an object.  Files are PEM
for every library: Java reads them since 2.7 (KIP-651).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from kcluster.principals import SecurityProtocol

JAVA: Final = "java"
PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"


class LoginFiles(Struct, frozen=True):
    """The PEM files of a client.  `key_store`: its certificate and its key in one file, as Java
    reads them; the last three only for clients with a certificate."""

    authority: str
    certificate: str | None = None
    key: str | None = None
    key_store: str | None = None


class Login(Struct, frozen=True):
    """How a client connects and logs in.  The password is in no repr."""

    bootstrap: str
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    mechanism: str | None = None
    user: str | None = None
    password: str = ""
    files: LoginFiles | None = None

    def __repr__(self) -> str:
        return f"<login of {self.user or 'nobody'} to {self.bootstrap}>"

    @property
    def is_scram(self) -> bool:
        return self.mechanism is not None and self.mechanism.startswith("SCRAM-")


class Code(Struct, frozen=True):
    """A setting that is an object, as an expression of the library's language."""

    text: str


Setting = str | int | bool | Code
Settings = dict[str, Setting]


def java(login: Login) -> Settings:
    """The properties of a Java client, also for the tools of Kafka (`--command-config`)."""
    settings: Settings = {
        "bootstrap.servers": login.bootstrap,
        "security.protocol": login.protocol.name,
    }
    if login.protocol.has_sasl:
        settings |= {"sasl.mechanism": login.mechanism or PLAIN, "sasl.jaas.config": _jaas(login)}
        if login.mechanism == OAUTHBEARER:
            handler = "OAuthBearerUnsecuredLoginCallbackHandler"
            package = "org.apache.kafka.common.security.oauthbearer.internals.unsecured"
            settings["sasl.login.callback.handler.class"] = f"{package}.{handler}"
    if login.protocol.has_tls and login.files is not None:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": login.files.authority}
        if login.files.key_store is not None:
            settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": login.files.key_store}
    return settings


def _jaas(login: Login) -> str:
    package = "org.apache.kafka.common.security"
    if login.mechanism == OAUTHBEARER:
        claim = f"unsecuredLoginStringClaim_sub={_quoted(login.user or '')}"
        return f"{package}.oauthbearer.OAuthBearerLoginModule required {claim};"
    module = "scram.ScramLoginModule" if login.is_scram else "plain.PlainLoginModule"
    name, password = _quoted(login.user or ""), _quoted(login.password)
    return f"{package}.{module} required username={name} password={password};"


def _quoted(text: str) -> str:
    """Text as JAAS files quote it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def librdkafka(login: Login) -> Settings:
    """The configuration of librdkafka: confluent-kafka in Python and Go, kcat, .NET, Rust and
    others."""
    settings: Settings = {
        "bootstrap.servers": login.bootstrap,
        "security.protocol": login.protocol.name,
    }
    if login.protocol.has_sasl:
        settings["sasl.mechanism"] = login.mechanism or PLAIN
        if login.mechanism == OAUTHBEARER:
            settings["enable.sasl.oauthbearer.unsecure.jwt"] = True
            settings["sasl.oauthbearer.config"] = f"principal={login.user}"
        else:
            settings |= {"sasl.username": login.user or "", "sasl.password": login.password}
    if login.protocol.has_tls and login.files is not None:
        settings["ssl.ca.location"] = login.files.authority
        if login.files.certificate is not None and login.files.key is not None:
            settings["ssl.certificate.location"] = login.files.certificate
            settings["ssl.key.location"] = login.files.key
    return settings


def _of_python(login: Login) -> Settings:
    settings: Settings = {
        "bootstrap_servers": login.bootstrap,
        "security_protocol": login.protocol.name,
    }
    if login.protocol.has_sasl:
        settings["sasl_mechanism"] = login.mechanism or PLAIN
        if login.mechanism == OAUTHBEARER:
            settings["sasl_oauth_token_provider"] = Code(f"UnsecuredToken({login.user!r})")
        else:
            settings["sasl_plain_username"] = login.user or ""
            settings["sasl_plain_password"] = login.password
    return settings


def kafka_python(login: Login) -> Settings:
    """The arguments of KafkaProducer, KafkaConsumer and KafkaAdminClient of kafka-python."""
    settings = _of_python(login)
    if login.protocol.has_tls and login.files is not None:
        settings["ssl_cafile"] = login.files.authority
        if login.files.certificate is not None and login.files.key is not None:
            settings |= {"ssl_certfile": login.files.certificate, "ssl_keyfile": login.files.key}
    return settings


def aiokafka(login: Login) -> Settings:
    """The arguments of AIOKafkaProducer and AIOKafkaConsumer."""
    settings = _of_python(login)
    if login.protocol.has_tls and login.files is not None:
        files = [f"cafile={login.files.authority!r}"]
        if login.files.certificate is not None and login.files.key is not None:
            files += [f"certfile={login.files.certificate!r}", f"keyfile={login.files.key!r}"]
        settings["ssl_context"] = Code(f"aiokafka.helpers.create_ssl_context({', '.join(files)})")
    return settings


def franz_go(login: Login) -> Settings:
    """The options of kgo.NewClient, each with its arguments."""
    seeds = ", ".join(json.dumps(each) for each in login.bootstrap.split(","))
    settings: Settings = {"kgo.SeedBrokers": Code(seeds)}
    if login.protocol.has_tls:
        settings["kgo.DialTLSConfig"] = Code("tlsConfig")
    if login.protocol.has_sasl:
        name, password = json.dumps(login.user or ""), json.dumps(login.password)
        if login.mechanism == OAUTHBEARER:
            text = "oauth.Auth{Token: token}.AsMechanism()"
        elif login.is_scram:
            size = (login.mechanism or "").rpartition("-")[2]
            text = f"scram.Auth{{User: {name}, Pass: {password}}}.AsSha{size}Mechanism()"
        else:
            text = f"plain.Auth{{User: {name}, Pass: {password}}}.AsMechanism()"
        settings["kgo.SASL"] = Code(text)
    return settings


def kafkajs(login: Login) -> Settings:
    """The options of the class `Kafka` of kafkajs."""
    brokers = json.dumps(login.bootstrap.split(","))
    settings: Settings = {"brokers": Code(brokers)}
    if login.protocol.has_tls:
        files = login.files
        parts = [] if files is None else [f"ca: [{_read(files.authority)}]"]
        if files is not None and files.certificate is not None and files.key is not None:
            parts += [f"cert: {_read(files.certificate)}", f"key: {_read(files.key)}"]
        settings["ssl"] = Code(f"{{{', '.join(parts)}}}" if parts else "true")
    if login.protocol.has_sasl:
        mechanism = json.dumps((login.mechanism or PLAIN).lower())
        if login.mechanism == OAUTHBEARER:
            rest = "oauthBearerProvider: async () => ({value: token})"
        else:
            name, password = json.dumps(login.user or ""), json.dumps(login.password)
            rest = f"username: {name}, password: {password}"
        settings["sasl"] = Code(f"{{mechanism: {mechanism}, {rest}}}")
    return settings


def _read(path: str) -> str:
    return f"fs.readFileSync({json.dumps(path)})"


SETTINGS_OF: Final[Mapping[str, Callable[[Login], Settings]]] = {
    JAVA: java,
    "librdkafka": librdkafka,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "franz-go": franz_go,
    "kafkajs": kafkajs,
}
"""The settings of each library, by its name."""


def text_of(library: str, settings: Settings) -> str:
    """The settings as its users write them: properties, arguments, options."""
    match library:
        case "java" | "librdkafka":
            return "\n".join(f"{name}={_property(value)}" for name, value in settings.items())
        case "kafkajs":
            return "{\n" + "".join(f"  {key}: {_code(v)},\n" for key, v in settings.items()) + "}"
        case "franz-go":
            return "\n".join(f"{name}({_code(value)})," for name, value in settings.items())
        case _:
            return "\n".join(f"{name}={_code(value)}," for name, value in settings.items())


def _property(value: Setting) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return _code(value) if isinstance(value, Code) else str(value).replace("\\", "\\\\")


def _code(value: Setting) -> str:
    return value.text if isinstance(value, Code) else repr(value)
