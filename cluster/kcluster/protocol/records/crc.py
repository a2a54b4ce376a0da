"""CRC-32C, the checksum of record batches.

Owns: the choice of the function.  Never: called per record.  Kafka: Crc32C.

When imported, the crc32c package asks importlib.metadata for its version.  That takes 20 ms, a
third of the time in which a cluster has to start.  So only its extension module is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Final

from kcluster.protocol.records.compression import Buffer


def _load() -> Callable[[Buffer], int]:
    package = PathFinder.find_spec("crc32c")
    if package is not None:
        extension = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
        if extension is not None and extension.loader is not None:
            module = module_from_spec(extension)
            extension.loader.exec_module(module)
            function: Callable[[Buffer], int] = module.crc32c
            return function
    import crc32c

    function = crc32c.crc32c
    return function


crc32c_of: Final = _load()
"""The CRC-32C of a bytes-like object."""

assert crc32c_of(b"123456789") == 0xE3069283
