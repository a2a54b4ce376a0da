"""The principal of a client from the subject of its certificate.

Owns: a subject as Java writes it, the rules of ssl.principal.mapping.rules.  Never: checks a
certificate (drivers/tls/ does), authorizes.
Kafka: DefaultKafkaPrincipalBuilder, SslPrincipalMapper; X500Principal.getName (RFC 2253).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

DEFAULT: Final = "DEFAULT"

_NAMES: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
"""The attributes that RFC 2253 names; all others are written by their object identifier."""

_ESCAPED: Final = ',=+<>#;"\\'
"""The characters before which Java writes a backslash: those of RFC 2253, `=`, and each `#`."""

_STRINGS: Final = {
    0x0C: "utf-8",
    0x13: "latin-1",
    0x14: "latin-1",
    0x16: "latin-1",
    0x1C: "utf-32-be",
    0x1E: "utf-16-be",
}
"""The encodings of ASN.1's string types, by tag: UTF8String, PrintableString, T61String, IA5String,
UniversalString, BMPString."""


def subject_name(der: bytes) -> str:
    """A subject in DER as Java's X500Principal.getName writes it: `CN=alice,OU=Ops,O=Example,C=US`.
    Its parts are in the reverse order of the certificate."""
    ((_, parts, _),) = _values(der)
    names = [
        "+".join(_attribute(each) for _, each, _ in _values(part)) for _, part, _ in _values(parts)
    ]
    return ",".join(reversed(names))


def certificate_subject(common_name: str) -> str:
    """The subject of a certificate that has only a common name: `CN=alice`."""
    return f"CN={_escaped(common_name)}"


def _attribute(der: bytes) -> str:
    (_, oid, _), (tag, value, encoded) = _values(der)
    number = _dotted(oid)
    name = _NAMES.get(number)
    if name is None or tag not in _STRINGS:
        return f"{number if name is None else name}=#{encoded.hex()}"
    return f"{name}={_escaped(value.decode(_STRINGS[tag], 'replace'))}"


def _values(der: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """The values that follow one another in DER: the tag, the content, and the bytes of both."""
    position = 0
    while position < len(der):
        tag, size = der[position], der[position + 1]
        start = position + 2
        if size & 0x80:
            digits = size & 0x7F
            size = int.from_bytes(der[start : start + digits])
            start += digits
        yield tag, der[start : start + size], der[position : start + size]
        position = start + size


def _dotted(oid: bytes) -> str:
    """An object identifier as text; its first byte has two numbers."""
    numbers, number = [*divmod(oid[0], 40)], 0
    for byte in oid[1:]:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    return ".".join(map(str, numbers))


def _escaped(value: str) -> str:
    text = value.strip(" ")
    leading = len(value) - len(value.lstrip(" "))
    trailing = len(value) - leading - len(text)
    body = "".join(f"\\{letter}" if letter in _ESCAPED else letter for letter in text)
    return "\\ " * leading + body.replace("\0", "\\00") + "\\ " * trailing


class MappingRule(Struct, frozen=True):
    """One rule.  `pattern`: a regular expression in Java's syntax; None: DEFAULT, which leaves the
    name as it is.  `case`: `L`, `U` or empty."""

    pattern: str | None = None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """The mapped name; None if the rule does not match."""
        if self.pattern is None:
            return name
        pattern = re.compile(_python_pattern(self.pattern))
        if pattern.fullmatch(name) is None:
            return None
        template = _template(self.replacement, pattern.groups)
        mapped = pattern.sub(lambda match: _filled(template, match), name)
        if self.case == "L":
            return mapped.lower()
        return mapped.upper() if self.case == "U" else mapped


_RULE: Final = re.compile(
    r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)|)\s*(?:,\s*|$)"
)


def mapping_rules(text: str) -> tuple[MappingRule, ...]:
    """The rules of ssl.principal.mapping.rules; ValueError for malformed rules.  Empty rules are
    skipped."""
    rules: list[MappingRule] = []
    text, position = text.strip(), 0
    while position < len(text):
        match = _RULE.match(text, position)
        if match is None or match.end() == position:
            raise ValueError(
                f"not a rule: {text[position:]}; rules are DEFAULT and RULE:pattern/replacement/"
                " with an L or U at the end"
            )
        position = match.end()
        if match[1] is not None:
            rules.append(MappingRule())
        elif match[2] is not None:
            try:
                re.compile(_python_pattern(match[2]))
            except re.error as error:
                raise ValueError(f"not a regular expression: {match[2]} ({error})") from None
            rules.append(MappingRule(match[2], match[3], match[4]))
    return tuple(rules)


def principal_name(rules: Sequence[MappingRule], name: str) -> str | None:
    """The name of the first rule that matches; None if no rule matches: the connection is then
    closed, as in Kafka."""
    for rule in rules:
        mapped = rule.apply(name)
        if mapped is not None:
            return mapped
    return None


def _python_pattern(pattern: str) -> str:
    """A pattern of Java in Python's syntax: named groups differ, and `$` at the end of a line."""
    return re.sub(r"\(\?<([A-Za-z]\w*)>", r"(?P<\1>", pattern)


def _template(replacement: str, groups: int) -> list[str | int]:
    r"""The pieces of a replacement: text, and numbers of groups.  As in Java, `$12` is group 12 if
    the pattern has 12 groups, else group 1 followed by `2`; `\` makes the next character plain.  As
    in Kafka, a group that the pattern does not have stays as it is written."""
    pieces: list[str | int] = []
    position = 0
    while position < len(replacement):
        letter = replacement[position]
        if letter == "\\" and position + 1 < len(replacement):
            pieces.append(replacement[position + 1])
            position += 2
            continue
        digits = re.match(r"\$(\d+)", replacement[position:])
        if digits is None:
            pieces.append(letter)
            position += 1
            continue
        number = digits[1]
        while int(number) > groups and len(number) > 1:
            number = number[:-1]
        pieces.append(int(number) if int(number) <= groups else f"${number}")
        position += 1 + len(number)
    return pieces


def _filled(template: list[str | int], match: re.Match[str]) -> str:
    return "".join(piece if isinstance(piece, str) else (match[piece] or "") for piece in template)
