"""`kcluster decode`: from hex, base64, files and stdin to lines and JSON."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kcluster.cli.verbs.decode import command
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import encode_request_frame, encode_response_frame

VERSION = 9
REQUEST = b"".join(
    encode_request_frame(
        ApiKey.METADATA,
        VERSION,
        7,
        "shop",
        m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="orders")]),
    )
)
RESPONSE = b"".join(
    encode_response_frame(
        ApiKey.METADATA,
        VERSION,
        7,
        m.MetadataResponse(
            topics=[m.MetadataResponse.MetadataResponseTopic(error_code=3, name="orders")]
        ),
    )
)


def run(*words: str, stdin: bytes = b"", code: int = 0) -> str:
    done = CliRunner().invoke(command, words, input=stdin)
    assert done.exit_code == code, done.output
    return done.output


def test_decode__without_any_bytes_it_says_what_it_takes() -> None:
    assert "stdin is empty; give a request as hex" in run(code=2)
    assert "stdin is empty" in run("-", stdin=b"\n", code=2)


def fields(*words: str, stdin: bytes = b"", code: int = 0) -> dict[str, Any]:
    (frame,) = json.loads(run("--json", *words, stdin=stdin, code=code))
    return {field["path"]: field for field in frame["fields"]}


def spaced(data: bytes) -> str:
    return " ".join(f"{byte:02X}" for byte in data)


def xxd(data: bytes) -> str:
    return "\n".join(
        f"{at:08x}: {data[at : at + 16].hex(' ', 2)}  {'.' * 16}" for at in range(0, len(data), 16)
    )


@pytest.mark.parametrize(
    "text",
    [
        REQUEST.hex(),
        spaced(REQUEST),
        REQUEST[4:].hex(),
        "0x" + REQUEST.hex(":"),
        xxd(REQUEST),
        base64.b64encode(REQUEST).decode(),
        base64.urlsafe_b64encode(REQUEST).decode(),
    ],
)
def test_decode__reads_each_text_form_from_argument_file_and_stdin(
    text: str, tmp_path: Path
) -> None:
    path = tmp_path / "frame"
    path.write_text(text)
    for found in (fields(text), fields(str(path)), fields(stdin=text.encode())):
        assert found["topics[0].name"]["value"] == "orders"
        assert found["header.client_id"]["value"] == "shop"


def test_decode__reads_raw_files_and_stdin(tmp_path: Path) -> None:
    path = tmp_path / "frame"
    path.write_bytes(REQUEST)
    assert fields(str(path)) == fields(stdin=REQUEST) == fields("--format", "raw", stdin=REQUEST)


def test_decode__identifies_a_response_by_options_or_by_its_request() -> None:
    by_name = fields("--api", "Metadata", "--version", "9", stdin=RESPONSE)
    assert by_name["topics[0].error_code"]["note"] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert fields("--response", "--api", "3", "--version", "9", stdin=RESPONSE) == by_name
    assert fields("--request", REQUEST.hex(), stdin=RESPONSE) == by_name


def test_decode__shows_a_line_for_each_value() -> None:
    lines = run(REQUEST.hex()).splitlines()
    assert lines[0] == f"Metadata request v9, {len(REQUEST)} bytes"
    assert lines[1].startswith("000000  00 00 00 ")
    (line,) = [x for x in lines if "'orders'" in x]
    assert "6f 72 64 65 72 73" in line
    assert "topics[0].name" in line


def test_decode__shows_where_bytes_are_malformed() -> None:
    at = REQUEST.index(b"orders") - 1
    damaged = REQUEST[:at] + b"\x60" + REQUEST[at + 1 :]
    output = run(damaged.hex(), code=1)
    assert f"wrong at byte {at} (0x{at:x}) in topics[0].name: 95 bytes claimed" in output
    assert "header.client_id" in output
    (frame,) = json.loads(run("--json", damaged.hex(), code=1))
    assert (frame["error"]["position"], frame["error"]["path"]) == (at, "topics[0].name")


def test_decode__truncates_long_values_unless_all_is_set() -> None:
    body = m.SaslAuthenticateRequest(auth_bytes=b"x" * 200)
    data = b"".join(encode_request_frame(ApiKey.SASL_AUTHENTICATE, 2, 7, None, body))
    assert "... 136 more bytes" in run(data.hex())
    assert "more bytes" not in run("--all", data.hex())


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("no such thing!",), "is neither hex, base64 nor a file"),
        (("--api", "Metadatta", "--version", "1", "00"), "did you mean Metadata"),
        (("--api", "Metadata", "--version", "99", "00"), "Metadata has versions 0 to 13"),
        (("--response", "00"), "give --api and --version"),
        (("--request", "0999", "00"), "--request: "),
        (("--format", "hex", "zz"), "is not hex"),
    ],
)
def test_decode__unusable_input_is_a_usage_error(words: tuple[str, ...], text: str) -> None:
    assert text in run(*words, code=2)


def test_decode__a_file_of_other_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "hello.bin"
    file.write_text("hello!")
    assert f"{file}: neither hex nor base64: 'hello!'" in run(str(file), code=2)
