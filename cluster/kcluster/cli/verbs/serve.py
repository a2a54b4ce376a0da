"""`kcluster serve`: many clusters in one process, by HTTP.

Owns: the verb's options.  Never: serves (work/serve.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from pathlib import Path

import click

from kcluster.cli.click_tools import Section, section


@section(Section.CLUSTER)
@click.command("serve")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=46000,
    show_default=True,
    help="Listen on this port; 0 means a free one.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Listen on this address. One that lets other machines in, such as 0.0.0.0, needs"
    " --tls-cert or --plain-http.",
)
@click.option(
    "--allow-host",
    "names",
    multiple=True,
    metavar="NAME",
    help="A name by which requests may reach the server, besides localhost and addresses;"
    " repeatable.",
)
@click.option(
    "--token",
    envvar="KCLUSTER_TOKEN",
    help="The token that requests must carry. A list of processes shows it; $KCLUSTER_TOKEN is not"
    " in it.  [default: $KCLUSTER_TOKEN, else drawn]",
)
@click.option(
    "--runs",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Requests may write run directories below this one, and nowhere else.",
)
@click.option(
    "--tls-cert",
    "certificate",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Serve https with the certificates in this PEM file.",
)
@click.option(
    "--tls-key",
    "key",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The PEM file of the certificate's key.  [default: the file of --tls-cert]",
)
@click.option(
    "--plain-http",
    "allows_plain_http",
    is_flag=True,
    help="Let other machines in without TLS. Whoever sees the traffic has the token; for containers"
    " whose port only this machine reaches, and trusted networks.",
)
@click.option("--exit-with-stdin", is_flag=True, help="Stop when the standard input ends.")
@click.option("--json", "as_json", is_flag=True, help="Print the ready line as JSON.")
def command(
    port: int,
    host: str,
    names: tuple[str, ...],
    token: str | None,
    runs: Path,
    certificate: Path | None,
    key: Path | None,
    allows_plain_http: bool,
    exit_with_stdin: bool,
    as_json: bool,
) -> None:
    """Create and break clusters by HTTP, from any language.

    The first line has the address and the token. GET /openapi.json describes the requests;
    docs/reference/http-api.md lists them. All clusters stop with the process.
    """
    from kcluster.cli.work.serve import serve_clusters

    if key is not None and certificate is None:
        raise click.UsageError("--tls-key goes with --tls-cert")
    tls = None if certificate is None else (certificate, key)
    serve_clusters(port, host, names, token, runs, tls, allows_plain_http, exit_with_stdin, as_json)
