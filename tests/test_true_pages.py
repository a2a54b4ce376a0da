"""What pages and files at the top of the repository say of the code is true.

Owns: places that pages name, the statuses of decisions, what CI and hooks run.  Never: reads prose;
checks links (test_docs_pages.py does).
"""

from __future__ import annotations

import configparser
import importlib
import re
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "cluster" / "kcluster"
DECISIONS = ROOT / "docs" / "decisions"
ARCHITECTURE = ROOT / "docs" / "explanation" / "architecture.md"


# ----------------------------------------------------------------------------------- places


PATH = re.compile(r"`((?:[\w.]+/)*[\w.]+(?:/|\.(?:py|txt|js|css|yaml|json|md)))`")


def lost_places(text: str) -> list[str]:
    """Paths in backticks that are neither in the package nor in the repository."""
    named = sorted(set(PATH.findall(text)))
    with_folder = [path for path in named if "/" in path.rstrip("/")]
    return [p for p in with_folder if not ((SOURCE / p).exists() or (ROOT / p).exists())]


@pytest.mark.parametrize(
    "page", [ARCHITECTURE, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem
)
def test_page__every_place_exists(page: Path) -> None:
    assert lost_places(page.read_text("utf-8")) == []


def test_lost_places__a_file_that_is_gone_is_found() -> None:
    assert lost_places("`events/nosuch.py`, `events/`, `tests/test_docs.py`, `x.py`") == [
        "events/nosuch.py"
    ]


def test_architecture__names_every_room() -> None:
    named = {path.rstrip("/") for path in PATH.findall(ARCHITECTURE.read_text("utf-8"))}
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name[0] != "_"}
    assert rooms - named == set()


CLASS = re.compile(r"`([A-Z][a-z]+(?:[A-Z]\w*)?)(?:\.(\w+))?`")


def test_architecture__every_class_exists() -> None:
    defined = set()
    for path in [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.js")]:
        text = path.read_text("utf-8")
        defined |= set(re.findall(r"^(?:export )?class (\w+)", text, re.MULTILINE))
    for page in (ARCHITECTURE, ROOT / "CONTRIBUTING.md"):
        named = {name for name, _ in CLASS.findall(page.read_text("utf-8"))}
        assert named - defined - {"Exception", "AnyEvent"} == set(), page.name


def glossary_places() -> list[str]:
    rows = (ROOT / "docs" / "reference" / "glossary.md").read_text("utf-8").splitlines()
    return [row.split("|")[3].strip().strip("`") for row in rows if row.startswith("| ")][1:]


def problem_of(place: str) -> str | None:
    """Why a place of the glossary cannot be reached; None if it can."""
    if "/" in place:
        return None if (ROOT / place).exists() else f"{place}: no such file"
    module, _, name = place.rpartition(".")
    if find_spec(f"kcluster.{place.split('.')[0]}") is None:
        return f"{place}: no such module"
    if name[0].islower():
        importlib.import_module(f"kcluster.{place}")
        return None
    holder = importlib.import_module(f"kcluster.{module}")
    return None if hasattr(holder, name) else f"{place}: no such name"


def test_glossary__every_place_can_be_imported() -> None:
    places = glossary_places()
    assert len(places) > 40
    assert [problem for place in places if (problem := problem_of(place))] == []


def test_problem_of__a_name_that_has_moved_is_found() -> None:
    assert problem_of("contract.Node") is None
    assert problem_of("contract.Target") == "contract.Target: no such name"
    assert problem_of("nosuch.Node") == "nosuch.Node: no such module"
    assert problem_of("tests/nosuch.py") == "tests/nosuch.py: no such file"


# -------------------------------------------------------------------------------- decisions


class Decision(NamedTuple):
    """One note: its file, its heading without the sign, and the line of its status."""

    file: str
    title: str
    status: str


_NOTE = r"\[\d{3}\]\(\S+\.md\)"
STATUS = re.compile(rf"accepted|(?:amended|superseded) by {_NOTE}(?: and {_NOTE})*(?:: .+)?")


def decisions() -> list[Decision]:
    found = []
    for path in sorted(DECISIONS.glob("0*.md")):
        lines = path.read_text("utf-8").splitlines()
        status = next((line for line in lines[:4] if line.startswith("Status: ")), "Status: ")
        found.append(Decision(path.name, lines[0].removeprefix("# "), status[8:]))
    return found


@pytest.mark.parametrize("decision", decisions(), ids=lambda decision: decision.file)
def test_decision__has_a_status_and_names_what_replaced_it(decision: Decision) -> None:
    assert re.fullmatch(rf"{decision.file[:3]} \S.*", decision.title)
    assert STATUS.fullmatch(decision.status), f"'Status: accepted' below the title: {decision.file}"
    for number, file in re.findall(r"\[(\d{3})\]\((\S+?)\)", decision.status):
        assert file.startswith(number)
        assert (DECISIONS / file).exists()


def test_decisions__the_index_lists_each_with_its_status() -> None:
    text = (DECISIONS / "index.md").read_text("utf-8")
    rows = [row for row in text.splitlines() if row.startswith("| [")]
    expected = [
        f"| [{note.title}]({note.file}) | {note.status.split(':')[0]} |" for note in decisions()
    ]
    assert rows == expected, "docs/decisions/index.md needs:\n" + "\n".join(expected)


@pytest.mark.parametrize("status", ["", "Accepted", "superseded", "superseded by 009"])
def test_status__a_wrong_one_is_found(status: str) -> None:
    assert not STATUS.fullmatch(status)


# ------------------------------------------------------------------------- the contributor's kit


def test_workflow__runs_what_every_change_must_pass() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    for job in workflow["jobs"].values():
        assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
        versions = job["strategy"]["matrix"]["python"]
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        assert project["requires-python"] == f">={min(versions)}"
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_hooks__run_the_makefiles_lint_and_tests_that_exist() -> None:
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    lint, rules = local["hooks"]
    assert local["repo"] == "local"  # the tools of .venv, whose versions constraints.txt pins
    assert lint["entry"] == "make --no-print-directory lint"
    assert re.search(r"^lint:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    tests = [word for word in rules["entry"].split() if word.endswith(".py")]
    assert tests
    assert all((ROOT / path).exists() for path in tests)


def test_editorconfig__has_the_line_length_that_ruff_checks() -> None:
    text = (ROOT / ".editorconfig").read_text("utf-8")
    editor = configparser.ConfigParser()
    editor.read_string(f"[top]\n{text}")
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["ruff"]
    assert editor["*.{py,pyi}"].getint("max_line_length") == ruff["line-length"]


@pytest.mark.parametrize("form", ["bug", "wish"])
def test_issue_form__asks_by_fields_of_their_own(form: str) -> None:
    path = ROOT / ".github" / "ISSUE_TEMPLATE" / f"{form}.yml"
    fields = yaml.safe_load(path.read_text("utf-8"))["body"]
    names = [field["id"] for field in fields]
    assert len(set(names)) == len(names) > 0
    assert all(field["attributes"]["label"] for field in fields)


def test_changelog__begins_with_unreleased_and_the_present_version() -> None:
    from kcluster.version import __version__

    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(__version__)} \(\d{{4}}-\d\d-\d\d\)", headings[1])
