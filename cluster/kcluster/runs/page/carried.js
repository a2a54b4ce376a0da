// @ts-check
// What the page of a run carries (carried.py), unpacked.

/** @import { Rows, Tables } from "./types.js" */

/**
 * The values that carried.py packed.
 *
 * @param {string} text
 * @returns {Promise<any>}
 */
export async function unpacked(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  const { writable, readable } = new DecompressionStream("deflate");
  const writer = writable.getWriter();
  writer.write(bytes);
  writer.close();
  return new Response(readable).json();
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
