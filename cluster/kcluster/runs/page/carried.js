// @ts-check
// What the page of a run carries (carried.py, bundle.py), unpacked.

import { byId } from "./dom.js";

/** @import { Rows, Tables } from "./types.js" */

/**
 * The values that carried.py packed into an element.
 *
 * @param {string} id
 * @returns {Promise<any>}
 */
export const unpacked = (id) => inflated(id).json();

/**
 * The script that bundle.py packed into an element; it runs where it is inserted.
 *
 * @param {string} id
 */
export async function scriptOf(id) {
  const script = document.createElement("script");
  script.textContent = await inflated(id).text();
  return script;
}

/** @param {string} id */
function inflated(id) {
  const letters = atob(byId(id).textContent);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  const { writable, readable } = new DecompressionStream("deflate");
  const writer = writable.getWriter();
  writer.write(bytes);
  writer.close();
  return new Response(readable);
}

/**
 * Tables as rows.
 *
 * @param {Tables} tables
 * @returns {Rows}
 */
export const rowsOf = (tables) =>
  Object.fromEntries(Object.entries(tables).map(([name, columns]) => [name, tableRows(columns)]));

/** @param {{ [column: string]: unknown[] }} columns */
function tableRows(columns) {
  const names = Object.keys(columns);
  return (columns[names[0]] ?? []).map((_, index) => {
    /** @type {{ [column: string]: unknown }} */
    const row = {};
    for (const name of names) row[name] = columns[name][index];
    return row;
  });
}
