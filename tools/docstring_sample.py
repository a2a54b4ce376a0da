"""Draw docstrings by a seed, to read them as somebody who does not see their code.

    python tools/docstring_sample.py --seed 7 --count 90 [--under protocol]

Owns: which docstrings there are, and the draw.  Never: judges one: a reader counts the sentences
that need a second reading.

Prints `path:line name`, and below it the text.  The docstrings of modules, classes, functions and
named values below cluster/kcluster are drawn, each with equal probability.
"""

from __future__ import annotations

import argparse
import ast
import random
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

SOURCE: Final = Path(__file__).resolve().parent.parent / "cluster" / "kcluster"


class Docstring(NamedTuple):
    """A docstring: its place, what it describes, and its text."""

    path: str
    line: int
    name: str
    text: str


def docstrings_of(path: str, source: str) -> Iterator[Docstring]:
    """The docstrings of one module in the order of its lines, that of the module first."""
    tree = ast.parse(source)
    found: list[Docstring] = []
    for owner in ast.walk(tree):
        body = getattr(owner, "body", None)
        if not isinstance(body, list):
            continue
        before: ast.AST = owner
        for index, node in enumerate(body):
            match node:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    name = name_of(owner if index == 0 else before)
                    found.append(Docstring(path, node.lineno, name, text))
            before = node
    yield from sorted(found, key=lambda each: each.line)


def name_of(node: ast.AST) -> str:
    """The name that a node defines; empty for a module."""
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
            return name
        case ast.AnnAssign(target=target) | ast.Assign(targets=[target]):
            return ast.unparse(target)
    return ""


def all_docstrings(under: str = "") -> list[Docstring]:
    """Every docstring of the package below the folder or file `under`, ordered by path."""
    place = SOURCE / under
    paths = [place] if place.is_file() else sorted(place.rglob("*.py"))
    return [
        each
        for path in paths
        for each in docstrings_of(path.relative_to(SOURCE).as_posix(), path.read_text("utf-8"))
    ]


def drawn(docstrings: list[Docstring], seed: int, count: int) -> list[Docstring]:
    """`count` of them, or all if there are fewer, in their order; a seed draws equal ones."""
    numbers = random.Random(seed).sample(range(len(docstrings)), min(count, len(docstrings)))
    return [docstrings[number] for number in sorted(numbers)]


def main() -> None:
    """Print the draw that the command line asks for."""
    parser = argparse.ArgumentParser(description="Draw docstrings by a seed.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=90)
    parser.add_argument("--under", default="", help="a room, folder or file of the package")
    options = parser.parse_args()
    for each in drawn(all_docstrings(options.under), options.seed, options.count):
        text = textwrap.indent(textwrap.dedent(f"    {each.text}").strip(), "    ")
        print(f"{each.path}:{each.line} {each.name}\n{text}\n")


if __name__ == "__main__":
    main()
