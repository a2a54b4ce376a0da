"""How an extra is installed depends on where kcluster came from."""

from __future__ import annotations

from pathlib import Path

from kcluster.extras import command


def test_extras__the_command_names_the_place_of_the_installation(tmp_path: Path) -> None:
    checkout = tmp_path / "my checkout"
    checkout.mkdir()
    assert command("spark", checkout.as_uri()) == f"pip install '{checkout}[spark]'"
    assert command("spark", None) == "pip install 'kcluster-sim[spark]'"


def test_extras__a_place_that_is_gone_is_not_named(tmp_path: Path) -> None:
    anywhere = "pip install '.[spark]' in a checkout of kcluster"
    assert command("spark", (tmp_path / "gone").as_uri()) == anywhere
    assert command("spark", "https://example.org/kcluster.git") == anywhere
