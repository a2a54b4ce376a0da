"""The roles that ask a request, and which of them a run on somebody's cluster has."""

from __future__ import annotations

from kcluster.conform.rights import NOBODY, OWN_ROLES, ROLES, by_roles, of_own_roles


def test_roles__those_of_a_run_have_rights_to_its_names_alone() -> None:
    assert OWN_ROLES.keys() < ROLES.keys()
    assert NOBODY in OWN_ROLES
    assert {role.split()[-1] for role in OWN_ROLES} == {
        NOBODY,
        "topic",
        "group",
        "transactional_id",
    }


def test_by_roles__equal_answers_are_one() -> None:
    answers = {NOBODY: "denied", "read topic": "rows", "write topic": "denied", "all topic": "rows"}
    assert by_roles(answers) == {"answer": "denied", "read topic, all topic": "rows"}


def test_of_own_roles__answers_of_other_roles_alone_are_left_out() -> None:
    outcome = {
        "answer": "denied",
        "all topic, alter cluster": "rows",
        "create cluster, all cluster": "made",
        "after 0": "what a step shows",
        "state": {"fresh": "records"},
    }
    assert of_own_roles(outcome) == {
        "answer": "denied",
        "all topic": "rows",
        "after 0": "what a step shows",
        "state": {"fresh": "records"},
    }
    assert of_own_roles("silent") == "silent"
