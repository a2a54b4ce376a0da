"""`kcluster learn`: the lessons of the course, in the terminal.

Owns: the verb's options.  Never: takes a student through a lesson (work/learn.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import re
from typing import Final

import click

from kcluster.cli.click_tools import Section, section

_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")


@section(Section.SCENARIOS)
@click.command("learn")
@click.argument("lesson", required=False, metavar="[LESSON]")
@click.option("--answers", "shows_answers", is_flag=True, help="Ask nothing: show the answers.")
@click.option(
    "--page", "with_page", is_flag=True, help="Play it live too, on a page in the browser."
)
@click.option("--vote", is_flag=True, help="With --page: phones on this network vote.")
@click.option(
    "--vote-host",
    metavar="HOST",
    default="",
    help="With --vote: the name of this machine for phones.  [default: its address]",
)
@click.option("--notes", "shows_notes", is_flag=True, help="Show the teacher's notes instead.")
@click.option("--json", "as_json", is_flag=True, help="Without LESSON: one JSON object per line.")
def command(
    lesson: str | None,
    shows_answers: bool,
    with_page: bool,
    vote: bool,
    vote_host: str,
    shows_notes: bool,
    as_json: bool,
) -> None:
    """Take a lesson of the course: leaders, failover, acks, ISR, transactions and more.

    LESSON is a number, a name, or the file of a lesson of your own; without it, all lessons are
    listed.  Each lesson asks before it shows what happens, and ends with an exercise.  With --page
    a live cluster plays along, with Kafka's own time constants: it waits while you read, and the
    answers may be given on the page.  With --vote, phones on the same network can vote, and do
    nothing else.
    """
    if (vote or vote_host) and not with_page:
        raise click.UsageError("--vote is for --page")
    if vote_host and not _HOST.fullmatch(vote_host):
        raise click.UsageError(
            f"--vote-host {vote_host}: a name or an IPv4 address, without a port, is needed"
        )
    if lesson is None or shows_notes:
        from kcluster.cli.work.lessons import list_lessons, print_notes

        if lesson is None:
            list_lessons(as_json)
        else:
            print_notes(lesson)
        return
    from kcluster.cli.work.learn import played_lesson, tell

    played = played_lesson(lesson)
    if with_page:
        from kcluster.cli.work.lesson_page import tell_with_page

        tell_with_page(played, shows_answers, vote_host if vote or vote_host else None)
    else:
        tell(played, shows_answers)
