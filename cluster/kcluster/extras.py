"""How the optional parts of kcluster are installed, in words for messages.

Owns: the command.  Never: installs anything.
Kafka: no counterpart.  pip: direct_url.json (PEP 610).

The distribution is on no public index yet.  Its name alone can be installed only if it came from an
index: by `pip install --find-links dist`, or from a company's mirror.
"""

from __future__ import annotations

import json
import os.path
import shlex
from typing import Final
from urllib.parse import unquote, urlsplit

DISTRIBUTION: Final = "kcluster-sim"


def how_to_install(extra: str) -> str:
    """The pip command that adds an extra to this installation, from where it was installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        written = distribution(DISTRIBUTION).read_text("direct_url.json")
    except PackageNotFoundError:  # the source is on the path, not installed
        return _from_checkout(extra)
    return command(extra, None if written is None else json.loads(written)["url"])


def command(extra: str, url: str | None) -> str:
    """The command for an installation from this URL; None: from an index."""
    if url is None:
        return f"pip install '{DISTRIBUTION}[{extra}]'"
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.scheme != "file" or not os.path.exists(path):
        return _from_checkout(extra)
    return f"pip install {shlex.quote(f'{path}[{extra}]')}"


def _from_checkout(extra: str) -> str:
    return f"pip install '.[{extra}]' in a checkout of kcluster"
