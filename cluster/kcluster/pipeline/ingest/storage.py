"""Small files and directories where Spark writes: a local disk, HDFS, or what else Hadoop knows.

Owns: paths below one root, and that a rename is one step.  Never: reads or writes tables.
Kafka: no counterpart; Hadoop's FileSystem.

Where a rename of a directory is no single step (object stores), neither is the end of a batch: the
next start finishes it, but somebody who reads in between may see half of one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from kcluster.pipeline.session import why

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Deed = TypeVar("_Deed", bound=Callable[..., Any])


def jvm_of(spark: SparkSession) -> Any:
    """The JVM behind a session, untyped as it is."""
    return spark._jvm


def has_class(spark: SparkSession, name: str) -> bool:
    """Whether a session's jars have a class."""
    from py4j.protocol import Py4JJavaError

    jvm = jvm_of(spark)
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        jvm.java.lang.Class.forName(name, False, loader)
    except Py4JJavaError:
        return False
    return True


def _told(deed: _Deed) -> _Deed:
    """Let it raise OSError for what Java raises."""

    @wraps(deed)
    def told(*args: Any) -> Any:
        from py4j.protocol import Py4JJavaError

        try:
            return deed(*args)
        except Py4JJavaError as error:
            raise OSError(why(error)) from None

    return told  # type: ignore[return-value]  # the same call


class SparkStorage:
    """Files below `root`; every path is relative to it.  OSError where Hadoop says no."""

    @_told
    def __init__(self, spark: SparkSession, root: str) -> None:
        self._jvm = jvm_of(spark)
        path = self._jvm.org.apache.hadoop.fs.Path(root)
        self._fs: Any = path.getFileSystem(spark._jsc.hadoopConfiguration())
        if self._fs.getScheme() == "file":
            self._fs = self._fs.getRawFileSystem()  # without a .crc file beside each
        self._root: Any = self._fs.makeQualified(path)
        self.root: str = self._root.toString()

    def url(self, path: str = "") -> str:
        """The whole path, with its scheme."""
        return str(self._path(path).toString())

    @_told
    def exists(self, path: str = "") -> bool:
        """Whether there is such a file or directory."""
        return bool(self._fs.exists(self._path(path)))

    @_told
    def is_directory(self, path: str = "") -> bool:
        """Whether it is there and a directory."""
        at = self._path(path)
        return bool(self._fs.exists(at)) and bool(self._fs.getFileStatus(at).isDirectory())

    @_told
    def names(self, path: str = "") -> list[str]:
        """What is in a directory, sorted; nothing where there is none."""
        at = self._path(path)
        if not self._fs.exists(at):
            return []
        return sorted(str(status.getPath().getName()) for status in self._fs.listStatus(at))

    @_told
    def read(self, path: str) -> str | None:
        """A file's text; None where there is none."""
        at = self._path(path)
        if not self._fs.exists(at):
            at = self._path(f"{path}.new")  # `write` was cut short between its two last steps
            if not self._fs.exists(at):
                return None
        stream = self._fs.open(at)
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    @_told
    def write(self, path: str, text: str) -> None:
        """A file, whole or not at all."""
        at, beside = self._path(path), self._path(f"{path}.new")
        stream = self._fs.create(beside, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        self.delete(path)
        self._renamed(beside, at)

    @_told
    def rename(self, path: str, to: str) -> None:
        """Move a file or directory to where nothing is; one step."""
        at = self._path(to)
        self._fs.mkdirs(at.getParent())
        self._renamed(self._path(path), at)

    @_told
    def make(self, path: str) -> None:
        """A directory, and those above it."""
        self._fs.mkdirs(self._path(path))

    @_told
    def delete(self, path: str) -> None:
        """A file, or a directory with all that is in it; nothing where there is none."""
        self._fs.delete(self._path(path), True)

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, path) if path else self._root

    def _renamed(self, path: Any, to: Any) -> None:
        if not self._fs.rename(path, to):
            raise OSError(f"{path.toString()}: cannot be renamed to {to.toString()}")
