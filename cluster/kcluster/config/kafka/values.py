"""The definition of one config, and its conversion from text to a value and back.

Owns: ConfigDef, Kafka's reading of values (types, ranges, lists), and its messages for invalid
ones.  Never: knows the existing configs (broker.py, topic.py do).  Kafka: clients ConfigDef
(parseType, Range, ValidString, ValidList), ConfigException.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final, Literal

from msgspec import Struct

ConfigType = Literal[
    "BOOLEAN", "STRING", "SHORT", "INT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"
]
Value = bool | int | float | str | tuple[str, ...] | None
"""A config's value: a LIST is a tuple of strings; None is Kafka's null (not set)."""
ConfigFields = dict[str, Value]
"""The values of a class of configs, by field."""
Dynamic = Literal["read-only", "per-broker", "cluster-wide"]
"""The time at which a broker takes a new value: at its start; when it changes for this broker; when
it changes for this or all brokers."""

Scope = Literal["broker", "topic", "group", "client-metrics"]
ReleaseNumber = tuple[int, int]
"""A release of Kafka, such as (4, 4)."""

_BITS: Final = {"SHORT": 16, "INT": 32, "LONG": 64}
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}")
_DOUBLE: Final = re.compile(
    r"[+-]?(NaN|Infinity|([0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})([eE][+-]?[0-9]{1,9})?[fFdD]?)"
)
_LIST_SEPARATOR: Final = re.compile(r"\s*,\s*")


class ConfigError(Exception):
    """The error for a config with an unknown name or an invalid value; str() is Kafka's message."""


class Spec(Struct, frozen=True):
    """The definition of a config in a field's annotation: everything but its name and default."""

    type: ConfigType
    minimum: float | None = None
    maximum: float | None = None
    or_equal: int | None = None
    """A valid value that lies outside the range."""
    one_of: tuple[str, ...] = ()
    ignores_case: bool = False
    """Whether the words of `one_of` may be written in any case; the value is kept as it was
    written."""
    check: Callable[[ConfigDef, Value], str | None] | None = None
    """A check beyond the range of values: returns the message, or None."""
    dynamic: Dynamic = "read-only"
    scaled: bool = False
    """Whether profiles scale the default: `fast` to a hundredth, unless the field `fast` is set,
    and `slow` to three times as much."""
    fast: int | None = None
    synonyms: tuple[str, ...] = ()
    feature: bool = False
    obeyed: bool = True
    """Whether the config has an effect here.  If not, it is stored and described as in Kafka, and
    so are the broker configs that give its default."""
    internal: bool = False
    """Whether Kafka describes the config only if it is set."""
    of_plugin: bool = False
    """Whether a plugin of Kafka's reads the config, which Kafka itself does not know: it describes
    the config without its value, and only if it is set."""
    since: ReleaseNumber = (0, 0)
    """The first release that has the config, if later than 4.3."""


class ConfigDef(Struct, frozen=True):
    """A config by Kafka's name."""

    name: str
    scope: Scope
    default: Value
    """Kafka's default, before a profile scales it."""
    spec: Spec

    @property
    def type(self) -> ConfigType:
        """Kafka's type name."""
        return self.spec.type

    @property
    def synonyms(self) -> tuple[str, ...]:
        """The broker configs that give a topic config its default, the strongest first."""
        return self.spec.synonyms

    @property
    def dynamic(self) -> Dynamic:
        """The time at which a running broker takes a new value.  Topic configs are always
        dynamic."""
        return self.spec.dynamic

    @property
    def scaled(self) -> bool:
        """Whether profiles scale the default: fast to a hundredth, slow to three times as much."""
        return self.spec.scaled

    @property
    def feature(self) -> bool:
        """Whether the config is a feature level in Kafka, set here like a config."""
        return self.spec.feature

    @property
    def obeyed(self) -> bool:
        """Whether the config has an effect here."""
        return self.spec.obeyed

    @property
    def internal(self) -> bool:
        """Whether Kafka describes the config only if it is set."""
        return self.spec.internal

    def is_in(self, release: ReleaseNumber) -> bool:
        """Whether brokers of a release have the config."""
        return release >= self.spec.since

    @property
    def field(self) -> str:
        """The name of the config's attribute in BrokerConfig, TopicConfig or GroupConfig."""
        return field_of(self.name)

    def default_for(self, profile: str) -> Value:
        """The default under a profile: usually a hundredth for `fast`, but never 0; three times as
        much for `slow`."""
        if profile == "kafka" or not self.spec.scaled:
            return self.default
        if profile == "slow":
            assert isinstance(self.default, int), self
            return self.default * SLOW_FACTOR if self.default > 0 else self.default
        if self.spec.fast is not None:
            return self.spec.fast
        assert isinstance(self.default, int), self
        return max(1, self.default // FAST_DIVISOR) if self.default > 0 else self.default


FAST_DIVISOR: Final = 100
SLOW_FACTOR: Final = 3
"""The factor of profile slow: a dead broker is noticed after 27 s, which gives a class time to
predict what will follow."""


def field_of(name: str) -> str:
    """The field of a config: `retention.ms` -> `retention_ms`.  No config of Kafka has an
    underscore in its name."""
    return name.replace(".", "_")


def definitions_of(struct: type[Struct], scope: Scope) -> dict[str, ConfigDef]:
    """ConfigDefs by name, in field order, from a Struct's annotations and defaults."""
    definitions = {}
    for field, default in zip(struct.__struct_fields__, struct.__struct_defaults__, strict=True):
        spec = struct.__annotations__[field].__metadata__[0]
        assert isinstance(spec, Spec), field
        name = field.replace("_", ".")
        definitions[name] = ConfigDef(name, scope, default, spec)
    return definitions


# ------------------------------------------------------------------------------------ text to value


def parse_value(definition: ConfigDef, text: str | bool | int | float) -> Value | ConfigError:
    """The value of `text` for this config; ConfigError with Kafka's message if it is invalid.

    A bool, int or float (from YAML or Python) counts like its text.
    """
    written = text if isinstance(text, str) else format_value(text) or ""
    value = _parse_type(definition, written)
    if isinstance(value, ConfigError):
        return value
    problem = _check(definition, value)
    return value if problem is None else ConfigError(problem)


def format_value(value: Value) -> str | None:
    """A value as Kafka writes it in DescribeConfigs; None for null."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(value)
        case float():
            return _double(value)
        case _:
            return str(value)


def _double(value: float) -> str:
    """A double as Java's Double.toString writes it: `1.0`, `1.5E308`."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0")
    power = exponent + len(digits) - 1
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{power}"


def invalid(name: str, value: object, reason: str) -> str:
    """Kafka's message for a bad value (ConfigException)."""
    return f"Invalid value {value} for configuration {name}: {reason}"


def _parse_type(definition: ConfigDef, text: str) -> Value | ConfigError:
    kind, name, trimmed = definition.spec.type, definition.name, text.strip()
    if kind in ("STRING", "CLASS", "PASSWORD"):
        return trimmed
    if kind == "LIST":
        return _parse_list(name, trimmed)
    if kind == "BOOLEAN":
        lowered = trimmed.lower()
        if lowered in ("true", "false"):
            return lowered == "true"
        return ConfigError(invalid(name, text, "Expected value to be either true or false"))
    if kind == "DOUBLE":
        if _DOUBLE.fullmatch(trimmed):
            return float(trimmed.rstrip("fFdD"))
    elif _INTEGER.fullmatch(trimmed):
        number, bits = int(trimmed), _BITS[kind]
        if -(1 << bits - 1) <= number < 1 << bits - 1:
            return number
    return ConfigError(invalid(name, text, f"Not a number of type {kind}"))


def _parse_list(name: str, trimmed: str) -> Value | ConfigError:
    if not trimmed:
        return ()
    items = _LIST_SEPARATOR.split(trimmed)
    if "" in items:
        return ConfigError(f"Configuration '{name}' values must not be empty.")
    return tuple(dict.fromkeys(items))


def _check(definition: ConfigDef, value: Value) -> str | None:
    spec, name = definition.spec, definition.name
    if spec.one_of:
        words = (value,) if isinstance(value, str) else value
        assert isinstance(words, tuple)
        for word in words:
            known = word.lower() if spec.ignores_case else word
            if known not in spec.one_of:
                return invalid(name, word, f"String must be one of: {', '.join(spec.one_of)}")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        reason = _out_of_range(spec, value)
        if reason is not None:
            return invalid(name, value, reason)
    return None if spec.check is None else spec.check(definition, value)


def _out_of_range(spec: Spec, value: float) -> str | None:
    low, high = spec.minimum, spec.maximum
    if spec.or_equal is not None:
        assert low is not None
        assert high is not None
        if value == spec.or_equal or low <= value <= high:
            return None
        return f"Value must be between {low:g} and {high:g} or equal to {spec.or_equal}"
    if low is not None and value < low:
        return f"Value must be at least {_number(low)}"
    if high is not None and value > high:
        return f"Value must be no more than {_number(high)}"
    return None


def _number(bound: float) -> str:
    return str(int(bound)) if bound == int(bound) else str(bound)


# ---------------------------------------------------------------------------------------- overrides


def known_configs(
    definitions: Mapping[str, ConfigDef], texts: dict[str, str], release: ReleaseNumber
) -> dict[str, str]:
    """The stored configs that `release` has.  In a cluster of several releases, configs of other
    releases may have been set."""
    if all(definitions[name].is_in(release) for name in texts):
        return texts
    return {name: text for name, text in texts.items() if definitions[name].is_in(release)}


NEWEST: Final[ReleaseNumber] = (99, 0)
"""A release newer than all others: it has every config that is known here."""


def parse_overrides(
    definitions: Mapping[str, ConfigDef],
    overrides: Mapping[str, str | bool | int | float],
    what: str,
    release: ReleaseNumber = NEWEST,
) -> dict[str, Value]:
    """Parse `overrides`: values by name; ConfigError for the first config that is invalid, or that
    `release` does not have."""
    values: dict[str, Value] = {}
    for name, text in overrides.items():
        definition = definitions.get(name)
        if definition is None or not definition.is_in(release):
            raise ConfigError(f"Unknown {what} config name: {name}")
        value = parse_value(definition, text)
        if isinstance(value, ConfigError):
            raise value
        values[name] = value
    return values
