"""`kcluster predict 'kill: leader(orders-0)'`: questions before an action, and their answers.

Owns: the verb: its options, its request, asking in the terminal.  Never: predicts
(operations/prediction.py), performs an action itself.  Kafka: no counterpart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kcluster.cli.click_tools import Section, control_options, make_change, print_json, section
from kcluster.cli.control.client import ask
from kcluster.cli.control.protocol import ChangeResult, ControlError, ControlRequest, handles
from kcluster.cli.verbs.clock import ClockRequest

if TYPE_CHECKING:
    from kcluster.cli.control.changes import Say
    from kcluster.cli.control.session import ControlSession
    from kcluster.scenario.language.model import Step


class PredictRequest(ControlRequest, verb="predict"):
    """`action`: as in a scenario file.  `pause`: pause the clock first, so that the answers hold.
    `perform`: ask nothing, perform the action, and resume the clock if `resume`."""

    action: str
    pause: bool = False
    perform: bool = False
    resume: bool = False


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
    answer = ask(PredictRequest(action, pause=perform), name)
    was_running = not answer["was_paused"]
    is_done = not perform
    try:
        if as_json:
            print_json(answer)
        else:
            _ask_all(answer["questions"], answers)
        if perform:
            make_change(PredictRequest(action, perform=True, resume=was_running), name, as_json)
            is_done = True
    finally:
        if was_running and not is_done:
            ask(ClockRequest("resume"), name)


def _ask_all(questions: list[dict[str, Any]], only_show: bool) -> None:
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
                raise ControlError("not answered; --answers shows the answers") from error
            right += typed == correct
            print("right." if typed == correct else "no.", end=" ")
        print(f"{correct}: {choices[correct - 1]['text']}. {question['reason']}\n")
    if not only_show:
        print(f"{right} of {len(questions)} right")


@handles(PredictRequest)
def handle(session: ControlSession, request: PredictRequest) -> dict[str, Any] | ChangeResult:
    """The questions about an action, with their answers; or the action, and what follows."""
    from kcluster.cli.verbs.fork import steps_of
    from kcluster.operations.errors import ClusterError
    from kcluster.scenario.predicting import question_values, questions

    cluster = session.cluster
    (step,) = steps_of([request.action])
    if request.perform:
        return _perform(session, step, request.resume)
    was_paused = cluster.clock().paused
    if request.pause:
        cluster.pause_clock()
    try:
        asked = questions(cluster, step)
    except ClusterError:
        if request.pause and not was_paused:
            cluster.resume_clock()
        raise
    return {
        "cluster": session.name,
        "action": request.action,
        "was_paused": was_paused,
        "questions": [question_values(question) for question in asked],
    }


def _perform(session: ControlSession, step: Step, resume: bool) -> ChangeResult:
    from kcluster.scenario.perform import perform

    cluster = session.cluster

    def operation(say: Say) -> None:
        try:
            perform(cluster, step)
        finally:
            if resume:
                cluster.resume_clock()
        cluster.wait_until_settled()

    return session.change(operation)
