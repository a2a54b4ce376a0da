"""The input and output of `kcluster decode`: bytes in several forms, and their fields.

Owns: reading hex, base64, raw files and stdin; the columns, the colours.  Never: decodes
(protocol/hexdump.py does).  Kafka: no counterpart.
"""

from __future__ import annotations

import base64
import binascii
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from kcluster.cli.click_tools import print_json
from kcluster.config.files.numbers import whole_number
from kcluster.config.files.problems import unknown
from kcluster.json_types import JsonObject
from kcluster.plain_output import plain_console
from kcluster.protocol.apis import APIS, is_known
from kcluster.protocol.hexdump import Dump, Span, dump_frames

BYTES_PER_LINE: Final = 16
LINES_PER_VALUE: Final = 4
"""The number of lines for a value; the bytes of a longer value are shown only with --all."""
VALUE_CHARS: Final = 60
NAME_CHARS_MAX: Final = 250
"""The greatest length of a file name; longer text is not one."""
_SEPARATORS: Final = re.compile(r"0x|\\x|[\s:,-]")
_DUMP_LINE: Final = re.compile(r"^[0-9a-fA-F]{6,8}:?\s+((?:[0-9a-fA-F]{2,4}\s{1,2})+)")
"""A line of xxd or `hexdump -C`, of which the offset and the text column are ignored."""
_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2})+")
_STYLES: Final = {
    "header": "cyan", "size": "cyan", "length": "dim", "string": "green", "bytes": "yellow",
    "int": "", "uuid": "magenta", "varint": "dim",
}  # fmt: skip


# --------------------------------------------------------------------------------------- input


def decode_source(
    source: str,
    response: bool,
    api: str | None,
    version: int | None,
    request: str | None,
    form: str,
    sized: bool | None,
    in_full: bool,
    as_json: bool,
) -> None:
    """Print the fields of the bytes in `source`; exit code 1 if they are malformed."""
    api_and_version = api_of_response(response, api, version, request, form)
    data = read_bytes(source, form)
    dumps = dump_frames(data, api_and_version, sized)
    if as_json:
        print_dumps_as_json(dumps)
    else:
        print_dumps(dumps, data, in_full)
    if any(dump.error is not None for dump in dumps):
        sys.exit(1)


def api_of_response(
    response: bool, api: str | None, version: int | None, request: str | None, form: str
) -> tuple[int, int] | None:
    """The API and version of a response; None for a request, which has them in its header."""
    if request is not None:
        dump = dump_frames(read_bytes(request, form))[0]
        if not is_known(dump.api_key, dump.api_version):
            raise click.UsageError(f"--request: {dump.error}")
        return dump.api_key, dump.api_version
    if api is None and version is None and not response:
        return None
    if api is None or version is None:
        raise click.UsageError("a response does not name its API; give --api and --version")
    names = {line.name.lower(): key for key, line in APIS.items()}
    number = whole_number(api)
    key = names.get(api.replace("_", "").lower(), -1) if number is None else number
    if key not in APIS:
        known = [line.name for line in APIS.values()]
        raise click.UsageError(f"--api {api}: {unknown('API', api, known)}")
    if not is_known(key, version):
        low, high = APIS[key].all_versions
        raise click.UsageError(
            f"--version {version}: {APIS[key].name} has versions {low} to {high}"
        )
    return key, version


def read_bytes(source: str, form: str) -> bytes:
    """The bytes that SOURCE refers to."""
    if source == "-":
        if sys.stdin.isatty():
            print("kcluster: reading hex, base64 or bytes; end with Ctrl-D", file=sys.stderr)
        content = sys.stdin.buffer.read()
        if not content.strip():
            raise click.UsageError("stdin is empty; give a request as hex, base64, or a file")
        return _read(content, form, "stdin")
    path = Path(source)
    if len(source) < NAME_CHARS_MAX and path.is_file():
        return _read(path.read_bytes(), form, source)
    return _from_text(source, "hex" if form == "raw" else form)


def _read(content: bytes, form: str, name: str) -> bytes:
    """The bytes of a file of this name: its content or, if that is text, the bytes that the text
    encodes."""
    if form == "raw":
        return content
    try:
        text = content.decode("ascii")
    except UnicodeDecodeError:
        if form == "auto":
            return content
        raise click.UsageError(f"{name}: not {form}") from None
    try:
        return _from_text(text, form)
    except click.UsageError:
        if form == "auto" and any(byte < 9 for byte in content):
            return content
        what = "neither hex nor base64" if form == "auto" else f"not {form}"
        raise click.UsageError(f"{name}: {what}: {text[:40]!r}") from None


def _from_text(text: str, form: str) -> bytes:
    lines = [_DUMP_LINE.match(line) for line in text.splitlines() if line.strip()]
    if lines and all(lines):
        plain = "".join(line[1] for line in lines if line is not None)
    else:
        plain = text
    plain = _SEPARATORS.sub("", plain)
    if form != "base64" and _HEX.fullmatch(plain):
        return bytes.fromhex(plain)
    if form != "hex":
        packed = "".join(text.split())
        try:
            return base64.b64decode(packed.replace("-", "+").replace("_", "/"), validate=True)
        except binascii.Error:
            pass
    what = "neither hex, base64 nor a file" if form == "auto" else f"not {form}"
    raise click.UsageError(f"{text[:40]!r} is {what}")


# -------------------------------------------------------------------------------------- output


def print_dumps_as_json(dumps: list[Dump]) -> None:
    """All frames as one JSON array."""
    print_json([_as_json(dump) for dump in dumps])


def _as_json(dump: Dump) -> JsonObject:
    error = dump.error
    return {
        "kind": dump.kind,
        "api": APIS[dump.api_key].name if dump.api_key in APIS else None,
        "version": dump.api_version,
        "fields": [_field(span) for span in dump.spans],
        "error": error
        and {"reason": error.reason, "position": error.position, "path": error.field_path},
    }


def _field(span: Span) -> JsonObject:
    value = span.value.hex() if isinstance(span.value, bytes) else span.value
    values = {
        "offset": span.offset,
        "size": span.size,
        "path": span.path,
        "type": span.type,
        "value": value,
    }
    values |= {name: text for name in ("note", "problem") if (text := getattr(span, name))}
    return values


def print_dumps(dumps: list[Dump], data: bytes, in_full: bool) -> None:
    """All frames as lines: offset, bytes, field, type, value."""
    from rich.text import Text

    console = plain_console(highlight=False, soft_wrap=True)
    for number, dump in enumerate(dumps):
        size = sum(span.size for span in dump.spans)
        title = f"{dump.title}, {size} bytes"
        console.print(Text(("\n" if number else "") + title, style="bold"))
        width = max((len(span.path) for span in dump.spans), default=0)
        for span in dump.spans:
            for offset, shown, words in _lines(span, data, width, in_full):
                line = Text()
                line.append(f"{offset:06x}  ", style="dim")
                line.append(f"{shown:<{BYTES_PER_LINE * 3}} ", style=_style(span))
                line.append(words, style="bold red" if span.problem else "")
                console.print(line, no_wrap=True)
        if dump.error is not None:
            error = dump.error
            where = f" in {error.field_path}" if error.field_path else ""
            text = f"wrong at byte {error.position} (0x{error.position:x}){where}: {error.reason}"
            console.print(Text(text, style="bold red"))


def _lines(span: Span, data: bytes, width: int, in_full: bool) -> Iterator[tuple[int, str, str]]:
    """(offset, hex, description) of each line for a value; only the first is described."""
    own = data[span.offset : span.offset + span.size]
    limit = len(own) if in_full else BYTES_PER_LINE * LINES_PER_VALUE
    for at in range(0, min(len(own), limit), BYTES_PER_LINE):
        shown = own[at : at + BYTES_PER_LINE].hex(" ")
        yield span.offset + at, shown, "" if at else _words(span, width)
    if len(own) > limit:
        yield span.offset + limit, f"... {len(own) - limit} more bytes", ""


def _words(span: Span, width: int) -> str:
    value = span.value
    if isinstance(value, bytes):
        shown = repr(value[:VALUE_CHARS])[1:]
    elif isinstance(value, str):
        shown = repr(value[:VALUE_CHARS])
    else:
        shown = "null" if value is None else str(value)
    note = f"  {span.note}" if span.note else ""
    problem = f"  <- {span.problem}" if span.problem else ""
    return f"{span.path:<{width}}  {span.type:<14}  {shown}{note}{problem}".rstrip()


def _style(span: Span) -> str:
    if span.problem:
        return "bold red"
    kind = "header" if span.path.startswith("header") else span.type
    return next((style for word, style in _STYLES.items() if word in kind), "")
