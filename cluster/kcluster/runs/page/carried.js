// @ts-check
// What the page of a run carries (carried.py, document.py), unpacked.

/** @import { Rows, Tables } from "./types.js" */

/**
 * The values that carried.py packed into an element.
 *
 * @param {string} id
 * @returns {Promise<any>}
 */
export const unpacked = (id) => inflated(id).json();

/**
 * Insert the script or the style that document.py packed into an element; a script runs.
 *
 * @param {"script" | "style"} tag
 * @param {string} id
 */
export async function insert(tag, id) {
  const element = document.createElement(tag);
  element.textContent = await inflated(id).text();
  document.body.append(element);
}

/** @param {string} id */
function inflated(id) {
  const { writable, readable } = new DecompressionStream("deflate");
  const writer = writable.getWriter();
  writer.write(bytesOf(document.getElementById(id)?.textContent ?? ""));
  writer.close();
  return new Response(readable);
}

/**
 * The bytes of base64.  Browsers from before 2025 have no fromBase64.
 *
 * @param {string} text
 * @returns {Uint8Array<ArrayBuffer>}
 */
const bytesOf = (text) =>
  /** @type {any} */ (Uint8Array).fromBase64?.(text) ??
  Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/**
 * Tables as rows.
 *
 * @param {Tables} tables
 * @returns {Rows}
 */
export const rowsOf = (tables) =>
  Object.fromEntries(Object.entries(tables).map(([name, columns]) => [name, tableRows(columns)]));

/**
 * The rows of a table.  They are one object, filled anew for each: the model keeps none.
 *
 * @param {{ [column: string]: unknown[] }} columns
 * @returns {Iterable<any>}
 */
function* tableRows(columns) {
  const names = Object.keys(columns);
  const count = columns[names[0]]?.length ?? 0;
  /** @type {{ [column: string]: unknown }} */
  const row = {};
  for (let index = 0; index < count; index++) {
    for (const name of names) row[name] = columns[name][index];
    yield row;
  }
}
