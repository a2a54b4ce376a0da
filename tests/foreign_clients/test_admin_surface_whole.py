"""No public method of either admin client was forgotten."""

from __future__ import annotations

import ast
from pathlib import Path

import kafka
import pytest
from confluent_kafka.admin import AdminClient

HERE = Path(__file__).parent

PYTHON_LEFT_OUT = {
    "abort_transaction",  # transactions come later
    "close",  # each use of real_clients.python_admin ends with it
}
NOTHING: set[str] = set()


@pytest.mark.parametrize(
    ("client", "called_as", "left_out", "files"),
    [
        (
            kafka.KafkaAdminClient,
            "python",
            PYTHON_LEFT_OUT,
            ("test_admin_surface_python.py", "test_admin_surface_python_groups.py"),
        ),
        (
            AdminClient,
            "admin",
            NOTHING,
            ("test_admin_surface_confluent.py", "test_admin_surface_confluent_groups.py"),
        ),
    ],
    ids=["kafka-python", "confluent-kafka"],
)
def test_admin_surface__every_method_is_called(
    client: type, called_as: str, left_out: set[str], files: tuple[str, ...]
) -> None:
    called = {name for file in files for name in methods_of(called_as, HERE / file)}
    public = {name for name in dir(client) if not name.startswith("_")}
    public = {name for name in public if callable(getattr(client, name))}
    assert public - called == left_out


def methods_of(name: str, path: Path) -> set[str]:
    """Attributes of the variable `name` anywhere in a file."""
    return {
        node.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        if isinstance(node.value, ast.Name) and node.value.id == name
    }
