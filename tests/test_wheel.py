"""The wheel: what is in it, and how it behaves beside a user's project with names like ours.

Owns: that the wheel has every file, and shadows no name of a user's project.  Never: tests what
kcluster does (the other tests), or the compiled wheel (`make wheels`).
"""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

CLUSTER_OF_THE_PROJECT = 'NAME = "the project\'s own"\n'
TESTS_OF_THE_PROJECT = """\
from importlib.machinery import SourceFileLoader

import cluster
import pytest


def test_the_module_beside_the_tests_is_the_one_that_is_imported():
    assert cluster.NAME == "the project's own"


@pytest.mark.kafka_cluster(topics={"orders": {"replication_factor": 3}})
def test_the_plugin_of_the_wheel_is_there(kafka_cluster):
    import kcluster

    assert "site-packages" in kcluster.__file__
    assert type(kcluster.handle.cluster.__loader__) is SourceFileLoader, "pytest rewrites nothing"
    assert kafka_cluster.leader("orders", 0) in (1, 2, 3)
"""
COMMANDS = {
    "python -m pytest": ["-m", "pytest"],
    "pytest": ["-P", "-c", "import pytest; raise SystemExit(pytest.console_main())"],
}
"""As each is run by the interpreter: only the first puts the current folder in front."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as `pip install .` builds it."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", f"--wheel-dir={folder}", str(ROOT)],
        check=True,
        timeout=60,
    )
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel in it, and this one's packages but for our own source."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False)
    (packages,) = home.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    # A .pth file in a folder that a .pth file names is not read: our editable source stays out.
    (packages / "dependencies.pth").write_text(str(Path(pytest.__file__).parents[1]))
    return home / "bin" / "python"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "cluster.py").write_text(CLUSTER_OF_THE_PROJECT)
    (tmp_path / "conftest.py").write_text("import kcluster.handle.cluster\n")
    (tmp_path / "test_project.py").write_text(TESTS_OF_THE_PROJECT)
    return tmp_path


def test_wheel__every_file_but_the_plugins_entry_is_below_kcluster(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {
        "kcluster",
        "kcluster_sim",
        "pytest_kcluster.py",
    }
    assert {"kcluster/py.typed", "kcluster/protocol/codec/schema/Produce.txt"} <= set(names)


def test_wheel__it_has_every_file_of_the_package_and_of_the_scenarios(wheel: Path) -> None:
    package, scenarios = ROOT / "cluster" / "kcluster", ROOT / "scenarios"
    ours = {f"kcluster/{path.relative_to(package)}" for path in tracked(package)}
    shipped = {
        f"kcluster/scenario/files/{path.relative_to(scenarios)}"
        for path in tracked(scenarios)
        if path.suffix == ".yaml"
    }
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    others = {"pytest_kcluster.py", "kcluster/cli/mcp/SKILL.md"}
    assert names == ours | shipped | others


def tracked(folder: Path) -> list[Path]:
    """The files below `folder` that belong to the source."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in files if path.suffix not in (".pyc", ".so")]


def test_wheel__a_scenario_runs_by_its_name_from_the_wheel(python: Path, tmp_path: Path) -> None:
    script = (
        "from kcluster.scenario.library import LibraryKind, library_files, library_path\n"
        "from kcluster.scenario.language.scenario import Scenario\n"
        "path = library_path(LibraryKind.SCENARIO, 'safe_settings')\n"
        "assert 'site-packages' in str(path), path\n"
        "assert Scenario.load(path).name == 'safe_settings'  # its profile is found, too\n"
        "print(*(len(library_files(kind)) > 0 for kind in LibraryKind))\n"
    )
    ended = subprocess.run(
        [python, "-P", "-c", script], cwd=tmp_path, check=False, timeout=50, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (0, "True True True True\n"), ended.stdout


@pytest.mark.parametrize("hiding", ["kcluster.py", "kcluster/__init__.py"])
def test_wheel__a_project_that_hides_the_package_gets_one_line(
    python: Path, tmp_path: Path, hiding: str
) -> None:
    own = tmp_path / hiding
    own.parent.mkdir(exist_ok=True)
    own.write_text("")
    (tmp_path / "test_project.py").write_text("def test_it(): pass\n")
    ended = session(python, tmp_path, "python -m pytest")
    assert ended.returncode == 0, ended.stdout
    assert f"PytestConfigWarning: {own} hides the package kcluster" in ended.stdout
    assert "Traceback" not in ended.stdout


def session(python: Path, project: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a project, where no bytecode may be written, as in a container."""
    return subprocess.run(
        [python, *COMMANDS[command], "-q", "-p", "no:cacheprovider"],
        cwd=project,
        env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
        timeout=50,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_wheel__a_project_with_a_cluster_module_keeps_it(
    project: Path, python: Path, command: str
) -> None:
    ended = session(python, project, command)
    assert ended.returncode == 0, ended.stdout
    assert "2 passed" in ended.stdout
