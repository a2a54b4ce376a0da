"""`kcluster predict 'kill: leader(orders-0)'`: questions before an action, and their answers.

Owns: the verb: its options, asking in the terminal.  Never: predicts
(operations/prediction.py), performs an action itself.  Kafka: no counterpart.
"""

from __future__ import annotations

import click

from kcluster.cli.acting import act
from kcluster.cli.click_tools import Section, control_options, print_json, section
from kcluster.cli.errors import CommandError
from kcluster.cli.remote import Query, Remote
from kcluster.json_types import JsonObject


@section(Section.FAULTS)
@click.command("predict")
@click.argument("action")
@click.option(
    "--do", "perform", is_flag=True, help="Freeze the cluster, ask, perform the action, go on."
)
@click.option("--answers", is_flag=True, help="Show the answers and ask nothing.")
@control_options
def command(action: str, perform: bool, answers: bool, name: str | None, as_json: bool) -> None:
    """Ask what an action will lead to, before it takes effect.

    ACTION is written as in scenario files: 'kill: leader(orders-0)'. Who leads next? Is the last
    record lost? Can producers with acks=all go on? Type the number of your answer. The right
    answers come from the rules by which the controller elects, for the cluster as it is now.
    """
    remote = Remote(name)
    must_resume = perform and not remote.get("clock")["paused"]
    if must_resume:
        remote.post("clock", {"pause": True})
    try:
        query: Query = {"action": action, "answers": True}
        answer = remote.get("predictions", query, options={"*": ""})
        if as_json:
            print_json(answer)
        else:
            _ask_all(answer["questions"], answers)
        if perform:
            resume, must_resume = must_resume, False
            act(action, name, as_json, resume=resume)
    finally:
        if must_resume:
            remote.post("clock", {"resume": True})


def _ask_all(questions: list[JsonObject], only_show: bool) -> None:
    """Ask each question, then show how many were answered rightly."""
    if not questions:
        print("nothing to predict: this action takes no broker from the cluster")
        return
    right = 0
    for question in questions:
        print(question["text"])
        choices = question["choices"]
        for number, choice in enumerate(choices, 1):
            print(f"  {number}  {choice['text']}")
        values = [choice["value"] for choice in choices]
        correct = values.index(question["answer"]) + 1
        if not only_show:
            try:
                typed = click.prompt("your answer", type=click.IntRange(1, len(choices)))
            except click.Abort as error:
                if isinstance(error.__context__, KeyboardInterrupt):
                    raise KeyboardInterrupt from None
                # The input has ended.
                raise CommandError("not answered; --answers shows the answers") from error
            right += typed == correct
            print("right." if typed == correct else "no.", end=" ")
        print(f"{correct}: {choices[correct - 1]['text']}. {question['reason']}\n")
    if not only_show:
        print(f"{right} of {len(questions)} right")
