"""How pages show an event: lane, mood, words."""

from __future__ import annotations

from kcluster.config.topology.model import Topology
from kcluster.events.brokers import BrokerStarted
from kcluster.events.network import LinkCut
from kcluster.runs.build_record import note_rows
from kcluster.runs.note_values import note_values, notes_values
from kcluster.runs.record import NoteRow
from kcluster.testing.handles import VirtualCluster
from tests.runs.stage import BEGAN_MS, DOWN, ELECTED, FENCED, unclean_run


def test_note_values__have_the_words_and_the_lane_of_an_event() -> None:
    notes = {note.id: note_values(note, BEGAN_MS) for note in unclean_run().notes}
    death, elected = notes[DOWN], notes[ELECTED]
    assert (death["lane"], death["mood"], death["subject"]) == ("actions", "bad", "broker 1")
    assert death["short"] == "broker 1 killed"
    assert (elected["lane"], elected["kind"]) == ("p:orders-0", "leader_elected")
    assert (elected["at_ms"], elected["cause"]) == (6_000, FENCED)
    assert elected["event"]["new_leader"] == 2
    assert elected["sentence"].endswith(elected["text"])
    assert notes[FENCED]["lane"] == "b1"


def test_note_values__the_start_of_the_cluster_is_no_action() -> None:
    note = NoteRow((-1, 1), 500, BrokerStarted(1))
    assert note_values(note, began_ms=500)["lane"] == ""
    assert note_values(note, began_ms=400)["lane"] == "actions"


def test_notes_values__links_that_are_cut_together_are_one_action() -> None:
    cluster = VirtualCluster(Topology.of(brokers=3), 1, "cut")
    cluster.do("isolate", nodes="1")
    notes = note_rows(cluster.recorder.notes)
    shown = [x["kind"] for x in notes_values(notes) if x["lane"] == "actions"]
    assert "link_cut" in [note.event.kind for note in notes]
    assert [kind for kind in shown if "cut" in kind] == ["network_cut"]
    alone = notes_values([NoteRow((-1, 9), 1, LinkCut(1, 2))])
    assert alone[0]["lane"] == "actions"
