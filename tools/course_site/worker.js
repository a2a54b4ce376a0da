// @ts-check
// The worker of the course's page: Python, with kcluster, and calls of its functions.
//
// Owns: starting Pyodide from the files that the page carries, without a network.  Never: knows
// what the functions do (cluster/kcluster/learn/in_browser.py) or draws.

/** @import { ToWorker, FromWorker } from "./types.js" */

/** @type {{ [name: string]: string }} */
const TYPES = { wasm: "application/wasm", mjs: "text/javascript", zip: "application/zip" };

/**
 * Python's functions, once it has started.
 *
 * @type {Promise<any> | null}
 */
let course = null;

/** @param {FromWorker} message */
const send = (message) => postMessage(message);

globalThis.onmessage = async (/** @type {MessageEvent<ToWorker>} */ { data }) => {
  try {
    if ("files" in data) {
      course = started(data.files);
      await course;
      send({ ready: performance.now() });
      return;
    }
    const python = await course;
    const began = performance.now();
    const report = (/** @type {number} */ done, /** @type {number} */ of) =>
      send({ number: data.number, done, of });
    const values = data.reports ? [...data.values, report] : data.values;
    const answer = python[data.call](...values);
    send({ number: data.number, answer, took_ms: performance.now() - began });
  } catch (error) {
    send({ number: "number" in data ? data.number : 0, error: String(error) });
  }
};

/**
 * Start Python and import the course.
 *
 * @param {{ [name: string]: string }} packed
 */
async function started(packed) {
  // Pyodide fetches its files by address: these are in the page, so that it opens from a file, too.
  globalThis.fetch = async (/** @type {any} */ address) => {
    const name = String(address).replace(/.*\//, "");
    return await file(packed, name);
  };
  const [{ loadPyodide }, { default: createPyodideModule }] = await Promise.all([
    module(packed, "pyodide.mjs"),
    module(packed, "pyodide.asm.mjs"),
  ]);
  const tree = file(packed, "kcluster.tree").then((answer) => answer.arrayBuffer());
  const python = await loadPyodide({
    indexURL: "page:///",
    createPyodideModule,
    lockFileContents: await (await file(packed, "pyodide-lock.json")).json(),
    env: { PYTHONDONTWRITEBYTECODE: "1" },
  });
  send({ stage: "Python reads kcluster." });
  unpack(await tree, python.FS);
  return python.runPython(`
import sys
sys.path.insert(0, "/kcluster")
import hashlib_openssl
from kcluster.learn import in_browser
in_browser
`);
}

/**
 * Write the files that build.py put into one.
 *
 * @param {ArrayBuffer} tree
 * @param {any} files Emscripten's file system
 */
function unpack(tree, files) {
  const size = new DataView(tree).getUint32(0, true);
  const index = JSON.parse(new TextDecoder().decode(new Uint8Array(tree, 4, size)));
  let start = 4 + size;
  for (const [path, length] of Object.entries(index)) {
    files.mkdirTree(`/kcluster/${path}`.replace(/\/[^/]*$/, ""));
    files.writeFile(`/kcluster/${path}`, new Uint8Array(tree, start, length));
    start += length;
  }
}

/**
 * A module that the page carries.
 *
 * @param {{ [name: string]: string }} packed
 * @param {string} name
 */
async function module(packed, name) {
  return await import(URL.createObjectURL(await (await file(packed, name)).blob()));
}

/**
 * A file that the page carries: base64 of what zlib made of it; a zip file as it is.
 *
 * @param {{ [name: string]: string }} packed
 * @param {string} name
 */
async function file(packed, name) {
  const text = packed[name];
  if (text === undefined) throw new Error(`the page has no ${name}`);
  const kind = name.replace(/.*\./, "");
  const bytes = bytesOf(text);
  const body =
    kind === "zip"
      ? bytes
      : new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(body, { headers: { "content-type": TYPES[kind] ?? "application/json" } });
}

/**
 * Browsers from before 2025 have no fromBase64.
 *
 * @param {string} text
 * @returns {Uint8Array<ArrayBuffer>}
 */
const bytesOf = (text) =>
  /** @type {any} */ (Uint8Array).fromBase64?.(text) ??
  Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
