"""`kcluster slow NODES [OTHERS]`: slow links down.

Owns: the verb's options.  Never: carries it out: it is the action slow (actions/).
Kafka: tc qdisc … netem delay.
"""

from __future__ import annotations

import click

from kcluster.cli.acting import act_on_links
from kcluster.cli.click_tools import Section, network_options, section
from kcluster.cli.completion import complete_targets


@section(Section.FAULTS)
@click.command("slow")
@click.argument("nodes", shell_complete=complete_targets)
@click.argument("others", required=False, shell_complete=complete_targets)
@click.option("--latency", metavar="TIME", required=True, help="Added to each message: 40ms.")
@click.option("--jitter", metavar="TIME", help="How far latencies vary: 5ms.")
@network_options
def command(
    nodes: str, others: str | None, latency: str, jitter: str | None, **options: object
) -> None:
    """Slow links down: kcluster slow 1 3 --latency 40ms.

    Without OTHERS all links of NODES are slowed down, including links between them: kcluster slow
    all --latency 40ms slows down replication as well.  kcluster heal undoes it.
    """
    keys = {"nodes": nodes, "others": others, "latency": latency, "jitter": jitter}
    typed = {"latency": "--latency", "jitter": "--jitter"}
    act_on_links("slow", keys, options, typed)
