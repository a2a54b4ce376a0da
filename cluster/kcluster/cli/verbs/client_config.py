"""`kcluster client-config LIBRARY`: the settings with which a client comes in.

Owns: the verb: its options.  Never: chooses a setting (handle/access.py does).
Kafka: the client.properties that an administrator hands out.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import Section, control_options, print_answer, section
from kcluster.cli.remote import Remote
from kcluster.security.client_settings import SETTINGS_OF


@section(Section.CLUSTER)
@click.command("client-config")
@click.argument("library", type=click.Choice(tuple(SETTINGS_OF)))
@click.option(
    "--user", metavar="NAME", help="Log in as this user.  [default: the first, where one must]"
)
@click.option("--listener", metavar="NAME", help="[default: the first that lets the user in]")
@click.option("--mechanism", metavar="NAME", help="[default: the strongest that the user has]")
@control_options
def command(
    library: str,
    user: str | None,
    listener: str | None,
    mechanism: str | None,
    name: str | None,
    as_json: bool,
) -> None:
    """Print the settings with which a client connects: kcluster client-config java --user alice.

    They hold the user's password, and name the files of certificates that the cluster made.
    """
    wanted = {"library": library, "user": user, "listener": listener, "mechanism": mechanism}
    options = {"user": "--user", "listener": "--listener", "mechanism": "--mechanism"}
    answer = Remote(name).get("client-config", wanted, options=options)
    print_answer(answer, [answer["text"]], as_json)
