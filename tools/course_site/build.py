"""Build the course as a site without a server: browsers play its lessons and scenarios.

    python tools/course_site/build.py build/course-site build/site

Owns: what the site's one file contains.  Never: fetches anything: `make site` puts Pyodide and the
wheels into the first folder (docs/decisions/042).  Kafka: no counterpart.

The file has Python itself (Pyodide), the rooms of kcluster that a run in virtual time needs, their
packages, and stand-ins for what browsers cannot load (stand_ins/).  Modules are compiled by the
Python that will run them, in Node.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import re
import shutil
import subprocess
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from kcluster.learn.in_browser import contents
from kcluster.runs.page.bundle import bundle
from kcluster.runs.page.document import FOLDER as RUN_PAGE
from kcluster.scenario.library import library_root

HERE: Final = Path(__file__).resolve().parent
PACKAGE: Final = HERE.parents[1] / "cluster" / "kcluster"
ROOMS_LEFT_OUT: Final = (
    "apache_kafka", "cli", "conform", "demo", "importing", "judge", "mirror", "pipeline", "proxy",
    "record", "testing", "web", "world",
)  # fmt: skip
"""The rooms that no run in virtual time imports."""
WHEELS: Final = ("msgspec", "cramjam")
"""The packages that are C or Rust, and have wheels for WebAssembly."""
PURE: Final = ("yaml", "mypy_extensions")
"""The modules of pure Python, which are copied from the packages of this interpreter."""
STAND_INS: Final = ("crc32c", "networkx")
"""The packages that modules of stand_ins/ replace."""
NOT_NEEDED: Final = {
    "cryptography": "makes certificates for the live clock",
    "gevent": "is the live clock",
    "jwt": "checks tokens of foreign clients",
    "re2": "compiles regular expressions of foreign clients",
    "rich": "prints on a terminal",
}
"""The packages that the rooms import, but not in virtual time."""
SHARED_SCRIPTS: Final = ("dom.js", "lesson.js")
"""The modules of the run's page that the course's page uses."""
PYTHON_FILES: Final = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm")
LIBRARY_LEFT_OUT: Final = (
    "_pyrepl", "doctest.py", "ensurepip", "imaplib.py", "multiprocessing", "pdb.py", "pydoc.py",
    "pydoc_data", "smtplib.py", "sqlite3", "tarfile.py", "unittest", "wsgiref", "xml", "xmlrpc",
)  # fmt: skip
"""The large parts of the standard library that the rooms do not import."""
FILE: Final = '<script type="text/plain" data-file="{}">{}</script>\n'


def main() -> None:
    """Write index.html into the second folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", type=Path, help="the folder with node_modules/pyodide and *.whl")
    parser.add_argument("out", type=Path, help="the folder of the site")
    chosen = parser.parse_args()
    print(build(chosen.parts, chosen.out))


def build(parts: Path, out: Path) -> Path:
    """Build the site from its parts; returns its file."""
    pyodide = parts.resolve() / "node_modules" / "pyodide"
    library = compiled_library(parts.resolve(), pyodide)
    with tempfile.TemporaryDirectory() as folder:
        copy_modules(Path(folder), parts)
        _compile(pyodide, Path(folder), library)
        modules = _in_one(Path(folder))
    files = {
        **{name: zlib.compress((pyodide / name).read_bytes()) for name in PYTHON_FILES},
        "pyodide-lock.json": zlib.compress(_lock(pyodide)),
        "python_stdlib.zip": library.read_bytes(),
        "kcluster.tree": zlib.compress(modules),
    }
    out.mkdir(parents=True, exist_ok=True)
    page = out / "index.html"
    page.write_text(page_with(files), "utf-8")
    return page


def compiled_library(parts: Path, pyodide: Path) -> Path:
    """A zip file with Python's standard library, made once.  Pyodide ships its sources; compiled,
    Python starts in less than half of the time."""
    file = parts / "library.zip"
    if not file.exists():
        with tempfile.TemporaryDirectory() as folder:
            zipfile.ZipFile(pyodide / "python_stdlib.zip").extractall(folder)
            for path in (Path(folder, name) for name in LIBRARY_LEFT_OUT):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
            _compile(pyodide, Path(folder))
            file.write_bytes(_zipped(Path(folder)))
    return file


def _compile(pyodide: Path, folder: Path, *library: Path) -> None:
    command = ["node", *map(str, (HERE / "compile.mjs", pyodide, folder, *library))]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def copy_modules(tree: Path, parts: Path) -> None:
    """Copy all that the browser's Python imports into a folder."""
    no_caches = shutil.ignore_patterns("__pycache__", "*.so", "*.pyi")

    def ignored(folder: str, names: list[str]) -> list[str]:
        left_out = ROOMS_LEFT_OUT if Path(folder) == PACKAGE else ()
        return [*no_caches(folder, names), *left_out]

    shutil.copytree(PACKAGE, tree / "kcluster", ignore=ignored)
    library = tree / "kcluster" / "scenario" / "files"
    shutil.copytree(library_root(), library, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for name in PURE:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        if origin.name == "__init__.py":
            shutil.copytree(origin.parent, tree / name, ignore=no_caches)
        else:
            shutil.copy(origin, tree)
    for source in (HERE / "stand_ins").glob("*.py"):
        shutil.copy(source, tree)
    for name in WHEELS:
        (wheel,) = parts.glob(f"{name}-*.whl")
        zipfile.ZipFile(wheel).extractall(tree)


def page_with(files: Mapping[str, bytes]) -> str:
    """The page of the course; `files`: what its worker starts from."""
    styles = (RUN_PAGE / "page.css", RUN_PAGE / "controls.css", HERE / "site.css")
    scripts = [
        bundle(RUN_PAGE, each, SHARED_SCRIPTS[:place]) for place, each in enumerate(SHARED_SCRIPTS)
    ]
    values = {
        "style": "".join(path.read_text("utf-8") for path in styles),
        "contents": contents().replace("<", "\\u003c"),  # so that no text in it ends the element
        "worker": (HERE / "worker.js").read_text("utf-8"),
        "script": "".join((*scripts, bundle(HERE, "site.js"))),
        "files": "".join(
            FILE.format(name, base64.b64encode(data).decode()) for name, data in files.items()
        ),
    }
    text = (HERE / "site.html").read_text("utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda at: values[at[1]], text)


def _lock(pyodide: Path) -> bytes:
    """The versions of Pyodide's own packages, of which the course uses none."""
    lock = json.loads((pyodide / "pyodide-lock.json").read_bytes())
    return json.dumps({**lock, "packages": {}}).encode()


def _in_one(folder: Path) -> bytes:
    """The files of a folder for the worker, which writes them in a tenth of the time in which
    Python unpacks a zip file: the size of the index in 4 bytes, little-endian, the index as JSON
    (path to size), the files."""
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    index = json.dumps({path: len(data) for path, data in files.items()}).encode()
    return b"".join((len(index).to_bytes(4, "little"), index, *files.values()))


def _zipped(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for each in sorted(folder.rglob("*")):
            if each.is_file():
                archive.write(each, each.relative_to(folder))
    return buffer.getvalue()


if __name__ == "__main__":
    main()
