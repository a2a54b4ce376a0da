"""Small files and directories on a file system of Hadoop: a local disk, HDFS, an object store.

Owns: paths below one root, files written as a whole.  Never: reads or writes tables.
Kafka: no counterpart; Hadoop's FileSystem.

A batch ends with the rename of a directory.  On object stores this is not atomic: after a failure
the next start finishes it, and until then a reader may see part of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Protocol, TypeVar

from kcluster.pipeline.session import why

if TYPE_CHECKING:
    from py4j.java_gateway import JVMView
    from pyspark.sql import SparkSession

_Call = TypeVar("_Call", bound=Callable[..., object])


class _Path(Protocol):
    """org.apache.hadoop.fs.Path, by Py4J."""

    def getFileSystem(self, configuration: object, /) -> _FileSystem: ...
    def getName(self) -> str: ...
    def getParent(self) -> _Path: ...
    def toString(self) -> str: ...


class _FileStatus(Protocol):
    """org.apache.hadoop.fs.FileStatus."""

    def getPath(self) -> _Path: ...
    def isDirectory(self) -> bool: ...


class _Stream(Protocol):
    """A stream of java.io."""

    def close(self) -> None: ...


class _InputStream(_Stream, Protocol):
    """java.io.InputStream."""

    def readAllBytes(self) -> bytes: ...


class _OutputStream(_Stream, Protocol):
    """java.io.OutputStream."""

    def write(self, data: bytearray, /) -> None: ...


class _FileSystem(Protocol):
    """org.apache.hadoop.fs.FileSystem."""

    def create(self, path: _Path, overwrite: bool, /) -> _OutputStream: ...
    def delete(self, path: _Path, recursive: bool, /) -> bool: ...
    def exists(self, path: _Path, /) -> bool: ...
    def getFileStatus(self, path: _Path, /) -> _FileStatus: ...
    def getRawFileSystem(self) -> _FileSystem: ...
    def getScheme(self) -> str: ...
    def listStatus(self, path: _Path, /) -> Iterable[_FileStatus]: ...
    def makeQualified(self, path: _Path, /) -> _Path: ...
    def mkdirs(self, path: _Path, /) -> bool: ...
    def open(self, path: _Path, /) -> _InputStream: ...
    def rename(self, path: _Path, to: _Path, /) -> bool: ...


def _jvm_of(spark: SparkSession) -> JVMView:
    """The JVM of a session."""
    assert spark._jvm is not None, "a session of this process, not of Spark Connect"
    return spark._jvm


def has_class(spark: SparkSession, name: str) -> bool:
    """Whether a session's jars contain a class."""
    from py4j.protocol import Py4JJavaError

    jvm = _jvm_of(spark)
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        jvm.java.lang.Class.forName(name, False, loader)
    except Py4JJavaError:
        return False
    return True


def _java_errors_as_oserror(call: _Call) -> _Call:
    """Raise OSError for an exception of Java."""

    @wraps(call)
    def wrapped(*args: object) -> object:
        from py4j.protocol import Py4JJavaError

        try:
            return call(*args)
        except Py4JJavaError as error:
            raise OSError(why(error)) from None

    return wrapped  # type: ignore[return-value]  # the same call


class SparkStorage:
    """Files below `root`; every path is relative to it.  OSError if Hadoop refuses."""

    @_java_errors_as_oserror
    def __init__(self, spark: SparkSession, root: str) -> None:
        # The class is looked up once: Java searches all jars for each part of the name.
        self._new_path: Callable[..., _Path] = _jvm_of(spark).org.apache.hadoop.fs.Path
        path = self._new_path(root)
        self._fs: _FileSystem = path.getFileSystem(spark._jsc.hadoopConfiguration())
        if self._fs.getScheme() == "file":
            self._fs = self._fs.getRawFileSystem()  # without a .crc file beside each
        self._root: _Path = self._fs.makeQualified(path)
        self.root: str = self._root.toString()

    def url(self, path: str = "") -> str:
        """The absolute path with its scheme."""
        return self._path(path).toString()

    @_java_errors_as_oserror
    def exists(self, path: str = "") -> bool:
        """Whether a file or directory exists at this path."""
        return self._fs.exists(self._path(path))

    @_java_errors_as_oserror
    def is_directory(self, path: str = "") -> bool:
        """Whether a directory exists at this path."""
        at = self._path(path)
        return self._fs.exists(at) and self._fs.getFileStatus(at).isDirectory()

    @_java_errors_as_oserror
    def names(self, path: str = "") -> list[str]:
        """The names in a directory, sorted; empty if the directory does not exist."""
        at = self._path(path)
        if not self._fs.exists(at):
            return []
        return sorted(status.getPath().getName() for status in self._fs.listStatus(at))

    @_java_errors_as_oserror
    def read(self, path: str) -> str | None:
        """The text of a file; None if it does not exist."""
        at = self._path(path)
        if not self._fs.exists(at):
            at = self._path(f"{path}.new")  # the process died between the last two steps of `write`
            if not self._fs.exists(at):
                return None
        stream = self._fs.open(at)
        try:
            return stream.readAllBytes().decode()
        finally:
            stream.close()

    @_java_errors_as_oserror
    def write(self, path: str, text: str) -> None:
        """Write a file, completely or not at all."""
        at, partial = self._path(path), self._path(f"{path}.new")
        stream = self._fs.create(partial, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        self.delete(path)
        self._rename(partial, at)

    @_java_errors_as_oserror
    def rename(self, path: str, to: str) -> None:
        """Move a file or directory to a path that does not exist yet."""
        at = self._path(to)
        self._fs.mkdirs(at.getParent())
        self._rename(self._path(path), at)

    @_java_errors_as_oserror
    def make(self, path: str) -> None:
        """Make a directory, and its parents."""
        self._fs.mkdirs(self._path(path))

    @_java_errors_as_oserror
    def delete(self, path: str) -> None:
        """Delete a file, or a directory with its content, if it exists."""
        self._fs.delete(self._path(path), True)

    def _path(self, path: str) -> _Path:
        return self._new_path(self._root, path) if path else self._root

    def _rename(self, path: _Path, to: _Path) -> None:
        if not self._fs.rename(path, to):
            raise OSError(f"{path.toString()}: cannot be renamed to {to.toString()}")
