"""Build the course as a site without a server: lessons, exercises and scenarios, played in browsers.

    python tools/course_site/build.py build/course-site build/site

Owns: what the site's one file contains.  Never: fetches anything: `make site` puts Pyodide and the
wheels into the first folder (docs/decisions/042).  Kafka: no counterpart.

The file has Python itself (Pyodide), and a zip file with the rooms of kcluster that a run in virtual
time needs, their packages, and stand-ins for what browsers cannot load (stand_ins/).  Modules are
compiled by the Python that will run them, in Node.
"""

from __future__ import annotations

import argparse
import base64
import html
import json
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from kcluster.runs.page.bundle import bundle
from kcluster.runs.page.document import FOLDER as RUN_PAGE
from kcluster.scenario.library import library_root

HERE: Final = Path(__file__).resolve().parent
PACKAGE: Final = HERE.parents[1] / "cluster" / "kcluster"
ROOMS_LEFT_OUT: Final = ("cli", "demo", "importing", "pipeline", "testing", "web", "world")
"""The rooms that no run in virtual time imports."""
WHEELS: Final = ("msgspec", "cramjam")
"""The packages that are C or Rust, and have wheels for WebAssembly."""
PURE: Final = ("yaml", "mypy_extensions")
"""The modules of pure Python, which are copied from this interpreter's packages."""
SHARED_SCRIPTS: Final = ("dom.js", "lesson.js")
"""The modules of the run's page that the course's page uses."""
PYTHON_FILES: Final = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
FILE: Final = '<script type="text/plain" data-file="{}">{}</script>\n'


def main() -> None:
    """Write index.html into the second folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", type=Path, help="the folder with node_modules/pyodide and *.whl")
    parser.add_argument("out", type=Path, help="the folder of the site")
    chosen = parser.parse_args()
    print(build(chosen.parts, chosen.out))


def build(parts: Path, out: Path) -> Path:
    """Build the site from its parts; its file."""
    tree = out / "tree"
    shutil.rmtree(out, ignore_errors=True)
    pyodide = parts.resolve() / "node_modules" / "pyodide"
    try:
        copy_modules(tree, parts)
        command = ("node", str(HERE / "compile.mjs"), str(pyodide), str(tree.resolve()))
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        files = {name: _packed(pyodide / name) for name in PYTHON_FILES}
        files["pyodide-lock.json"] = _base64(_lock(pyodide))
        files["kcluster.zip"] = _zipped(tree, out / "kcluster.zip")
    finally:
        shutil.rmtree(tree, ignore_errors=True)
    page = out / "index.html"
    page.write_text(page_with(files), "utf-8")
    return page


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


def page_with(files: dict[str, str]) -> str:
    """The page of the course; `files`: what its worker starts from, in base64."""
    style = "".join(
        path.read_text("utf-8")
        for path in (RUN_PAGE / "page.css", RUN_PAGE / "controls.css", HERE / "site.css")
    )
    scripts = [
        bundle(RUN_PAGE, each, SHARED_SCRIPTS[:place]) for place, each in enumerate(SHARED_SCRIPTS)
    ]
    values = {
        "style": style,
        "worker": (HERE / "worker.js").read_text("utf-8"),
        "script": "".join((*scripts, bundle(HERE, "site.js"))),
        "files": "".join(FILE.format(html.escape(name), text) for name, text in files.items()),
    }
    text = (HERE / "site.html").read_text("utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda at: values[at[1]], text)


def _packed(path: Path) -> str:
    data = path.read_bytes()
    return base64.b64encode(data).decode() if path.suffix == ".zip" else _base64(data)


def _base64(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode()


def _lock(pyodide: Path) -> bytes:
    """The versions of Pyodide's own packages, of which the course uses none."""
    lock = json.loads((pyodide / "pyodide-lock.json").read_bytes())
    return json.dumps({**lock, "packages": {}}).encode()


def _zipped(tree: Path, path: Path) -> str:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for each in sorted(tree.rglob("*")):
            if each.is_file():
                archive.write(each, each.relative_to(tree))
    text = _packed(path)
    path.unlink()
    return text


if __name__ == "__main__":
    sys.exit(main())
