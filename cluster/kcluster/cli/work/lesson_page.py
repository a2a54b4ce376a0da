"""The work of `kcluster learn --page`: a lesson beside a live cluster and its page.

Owns: the cluster and the server of the lesson.  Never: asks a question (learn.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kcluster.cli.click_tools import fail
from kcluster.cli.errors import CommandError
from kcluster.cli.work.learn import LessonStage, tell
from kcluster.learn.live import LiveLesson
from kcluster.learn.playing import LessonPlayed, PartPlayed
from kcluster.operations.errors import ClusterError
from kcluster.web.held import HeldCluster
from kcluster.web.lesson_card import LessonCard
from kcluster.web.server import WebServer


def tell_with_page(played: LessonPlayed, shows_answers: bool) -> None:
    """Tell a lesson, and play it on the page."""
    try:
        with LiveLesson(played.lesson) as live:
            server = WebServer(can_create=False)
            held = HeldCluster(played.lesson.name, live.cluster, stop=_nothing)
            server.clusters.add(held)
            server.start()
            try:
                print(f"The cluster is live; open its page: {server.page_url(held.id)}", flush=True)
                show = partial(_show, held.lessons.show)
                tell(played, shows_answers, LessonStage(live.play, show))
            finally:
                server.stop()
    except ClusterError as error:
        fail(CommandError(str(error)))


def _show(
    show_card: Callable[[LessonCard], None], title: str, each: PartPlayed, shows_answer: bool
) -> None:
    """Show a part on the page: before it is played, or with the answer."""
    part, ask = each.part, each.part.ask
    show_card(
        LessonCard(
            lesson=title,
            part=part.title,
            text=part.text,
            question="" if ask is None else ask.question,
            choices=() if ask is None else tuple(choice.text for choice in ask.choices),
            right=each.right if shows_answer else None,
            because=ask.because if ask is not None and shows_answer else "",
            after=part.after if shows_answer else "",
        )
    )


def _nothing() -> None:
    """Do nothing: the lesson ends its cluster itself."""
