"""Files of users: their bytes within a limit, their text, their tree; in messages, each kind has
its own name.

Owns: FileKind, the messages about a file that cannot be read as YAML. Never: knows the content of a
kind of file.  Kafka: no counterpart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from msgspec import Struct

from kcluster.config.files.problems import Problem, ProblemsError
from kcluster.config.files.tree import MAX_TEXT_BYTES, Node, from_yaml

if TYPE_CHECKING:
    from os import PathLike


class FileKind(Struct, frozen=True):
    """One kind of file.  `word`: its name in messages; `error`: the error to raise; `least`: the
    smallest valid content."""

    word: str
    error: type[ProblemsError]
    least: str = ""

    def load(self, path: str | PathLike[str]) -> tuple[str, Node, list[Problem]]:
        """Read a file: its text, its tree, and its problems as a YAML document. Raises `error` if
        it has no tree."""
        source = str(path)
        try:
            with open(source, "rb") as file:
                data = file.read(MAX_TEXT_BYTES + 1)
        except FileNotFoundError:
            self._refuse(source, "no such file")
        except IsADirectoryError:
            self._refuse(source, "a directory; name the file in it")
        except OSError as error:
            self._refuse(source, f"cannot be read: {error.strerror}")
        return self.parse(data, source)

    def parse(self, text: str | bytes, source: str) -> tuple[str, Node, list[Problem]]:
        """Parse a text as `load` does a file; `source` stands for the file in messages."""
        if len(text) > MAX_TEXT_BYTES:
            self._refuse(source, f"larger than {MAX_TEXT_BYTES // 1024} KiB: not {self.one}")
        text = self._decoded(text, source)
        node, problems = from_yaml(text, source, self.word)
        if node is None and problems:
            raise self.error(problems)
        if node is None:
            least = f"empty; the least that works is {self.least}" if self.least else ""
            self._refuse(source, least or f"empty: not {self.one}", 1, 1)
        return text, node, problems

    @property
    def one(self) -> str:
        """The file kind's word with its article."""
        return f"{'an' if self.word[0] in 'aeiou' else 'a'} {self.word}"

    def _decoded(self, text: str | bytes, source: str) -> str:
        if isinstance(text, str):
            return text.removeprefix("\ufeff")
        if text.startswith((b"\xff\xfe", b"\xfe\xff")):
            self._refuse(source, "UTF-16; save it as UTF-8", 1, 1)
        try:
            return text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            before = error.object[: error.start]
            line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
            self._refuse(
                source, f"byte 0x{error.object[error.start]:02x} is not UTF-8", line, column
            )

    def _refuse(self, source: str, text: str, line: int = 0, column: int = 0) -> NoReturn:
        raise self.error([Problem(source, line, column, "", text)]) from None
