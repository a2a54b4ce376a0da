"""`kcluster decode SOURCE`: a request or response, byte by byte.

Owns: the verb's options.  Never: reads or shows bytes (work/decode.py).
Kafka: no counterpart; like `xxd`, if that knew the protocol.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import Section, section


@section(Section.TOOLS)
@click.command("decode")
@click.argument("source", default="-")
@click.option("--response", is_flag=True, help="Decode a response; needs --api and --version.")
@click.option("--api", help="The API of a response: Produce, or 0.")
@click.option("--version", type=int, help="The version of a response.")
@click.option("--request", help="The request that the response answers, in the form of SOURCE.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["auto", "hex", "base64", "raw"]),
    default="auto",
    show_default=True,
    help="The form of SOURCE.",
)
@click.option(
    "--size/--no-size",
    "sized",
    default=None,
    help="Whether each frame begins with its size in 4 bytes.  [default: detected]",
)
@click.option("--all", "in_full", is_flag=True, help="Show all bytes of long values.")
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
def command(
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
    """Show the fields of a request or response, byte by byte.

    SOURCE is hex or base64 text, a file that contains either or the raw bytes, or - for stdin.  A
    request names its API and version; for a response give --api and --version, or the --request.
    The exit code is 1 if the bytes are malformed; the output shows where.
    """
    from kcluster.cli.work.decode import decode_source

    decode_source(source, response, api, version, request, form, sized, in_full, as_json)
