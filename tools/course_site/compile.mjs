// Compiles the modules below a folder for the Python that browsers run, and removes their sources.
//
//     node compile.mjs PYODIDE FOLDER [LIBRARY]
//
// Owns: running that Python here: its version is not this machine's.  Never: chooses the modules.
// LIBRARY: a zip file with a standard library that starts faster than Pyodide's own.

import { pathToFileURL } from "node:url";

const [pyodide, folder, library] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`).href);
const python = await loadPyodide({ stdLibURL: library });
python.mountNodeFS("/tree", folder);
python.runPython(`
import compileall, pathlib, py_compile, sys
tree = pathlib.Path("/tree")
whole = compileall.compile_dir(
    tree, quiet=1, legacy=True, stripdir="/tree", maxlevels=50,
    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
)
if not whole:
    sys.exit("a module could not be compiled")
for source in tree.rglob("*.py"):
    source.unlink()
`);
