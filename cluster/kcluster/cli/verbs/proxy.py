"""`kcluster proxy`: a proxy in front of any Kafka cluster.

Owns: the verb's options.  Never: proxies (work/proxy.py, proxy/).
Kafka: no counterpart.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kcluster.cli.click_tools import Section, section


@section(Section.CLUSTER)
@click.command("proxy")
@click.option(
    "--bootstrap",
    required=True,
    metavar="HOST:PORT",
    help="The cluster: one of its brokers, or several with commas.",
)
@click.option(
    "--rules",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Apply the rules in this YAML file: a list of `rule: {...}`, as in a scenario.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the record to a directory below DIR.",
    metavar="DIR",
)
@click.option(
    "--listen",
    default="127.0.0.1",
    show_default=True,
    metavar="HOST",
    help="Listen on this address.",
)
@click.option(
    "--base-port",
    type=click.IntRange(0, 65535),
    default=19092,
    show_default=True,
    metavar="P",
    help="The port of the bootstrap server; broker N gets P + 1 + N. 0 means free ports.",
)
@click.option(
    "--allow",
    multiple=True,
    metavar="HOST",
    help="Go to this host, although it is not this machine; repeatable.",
)
@click.option(
    "--command-config",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Connect to the cluster with these properties, in the form of Kafka's tools.",
)
@click.option(
    "--tls-cert",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Clients connect with TLS; this PEM file has the certificates.",
)
@click.option(
    "--tls-key",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The PEM file of the certificate's key.  [default: the file of --tls-cert]",
)
@click.option(
    "--page",
    is_flag=True,
    help="With --out: draw the record as a page, timeline.html, every few seconds.",
)
@click.option("--name", default="proxy", show_default=True, help="The name for other verbs.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def command(
    bootstrap: str,
    rules: Path | None,
    out: Path | None,
    listen: str,
    base_port: int,
    allow: tuple[str, ...],
    command_config: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    page: bool,
    name: str,
    as_json: bool,
) -> None:
    """Stand between clients and any Kafka cluster: record each request, and apply rules.

    Clients use the printed address in place of the cluster's. Without rules, requests and answers
    pass unchanged, except for brokers' addresses. Ctrl-C stops it.
    """
    from kcluster.cli.work.proxy import ProxyOptions, run_proxy

    if tls_key is not None and tls_cert is None:
        raise click.UsageError("--tls-key goes with --tls-cert")
    if page and out is None:
        raise click.UsageError("--page draws the record; add --out DIR")
    options = ProxyOptions(
        bootstrap=bootstrap,
        rules=rules,
        out=out,
        listen=listen,
        base_port=base_port,
        allow=allow,
        command_config=command_config,
        tls=None if tls_cert is None else (tls_cert, tls_key or tls_cert),
        name=name,
        as_json=as_json,
        page=page,
    )
    sys.exit(run_proxy(options))
