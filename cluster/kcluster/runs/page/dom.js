// @ts-check
// Trees and the document: a view is a function that returns a tree, `patch` makes the document match.
//
// Elements are kept by key from frame to frame, so focus and clicks survive.  Text is only ever
// inserted as text.

/** @import { Child, Inside, Props, Tree } from "./types.js" */

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";
const LIVE_PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "selected"]);

/**
 * What was made of a tree, with what it was made of.
 *
 * @typedef {(Element | Text) & { kept?: Drawn[], treeKey: string, treeProps: Props }} Drawn
 */

/**
 * A tree.
 *
 * @param {string} tag
 * @param {Props | null} [props] attributes, `on...` handlers, `key` among its siblings
 * @param {Inside[]} inside null children are left out
 * @returns {Tree}
 */
export function h(tag, props, ...inside) {
  const { key = "", ...rest } = props ?? {};
  return { tag, key: `${tag} ${key}`, props: rest, inside: present(inside) };
}

/**
 * @param {Inside[]} parts
 * @returns {Child[]}
 */
const present = (parts) =>
  parts.flatMap((part) => {
    if (Array.isArray(part)) return present(part);
    return part === null || part === undefined || part === false || part === "" ? [] : [part];
  });

/** @param {Child} tree */
const keyOf = (tree) => (typeof tree === "object" ? tree.key : "#text");

/**
 * Make the children of an element match trees.
 *
 * @param {Element & { kept?: Drawn[] }} parent
 * @param {Inside[]} trees
 */
export function patch(parent, trees) {
  /** @type {Map<string, Drawn[]>} */
  const spare = new Map();
  for (const kept of parent.kept ?? []) {
    const same = spare.get(kept.treeKey);
    if (same) same.push(kept);
    else spare.set(kept.treeKey, [kept]);
  }
  const wanted = present(trees).map((tree) => {
    const node = spare.get(keyOf(tree))?.shift() ?? made(tree, parent);
    update(node, tree);
    return node;
  });
  for (const left of spare.values()) for (const node of left) node.remove();
  let place = parent.firstChild;
  for (const node of wanted) {
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
  }
  parent.kept = wanted;
}

/**
 * @param {Child} tree
 * @param {Element} parent
 * @returns {Drawn}
 */
function made(tree, parent) {
  const isSvg = (/** @type {string} */ tag) =>
    tag === "svg" || parent.namespaceURI === SVG_NAMESPACE;
  const node =
    typeof tree !== "object"
      ? document.createTextNode("")
      : isSvg(tree.tag)
        ? document.createElementNS(SVG_NAMESPACE, tree.tag)
        : document.createElement(tree.tag);
  return Object.assign(node, { treeKey: keyOf(tree), treeProps: {} });
}

/**
 * @param {Drawn} node
 * @param {Child} tree
 */
function update(node, tree) {
  if (node instanceof Text || typeof tree !== "object") {
    const text = String(tree);
    if (node.textContent !== text) node.textContent = text;
    return;
  }
  if (node.treeProps === tree.props) return; // the same tree as before
  for (const name of Object.keys(node.treeProps)) {
    if (!(name in tree.props)) setProperty(node, name, null);
  }
  for (const [name, value] of Object.entries(tree.props)) {
    if (node.treeProps[name] !== value) setProperty(node, name, value);
  }
  node.treeProps = tree.props;
  patch(node, tree.inside);
}

/**
 * @param {Element} node
 * @param {string} name
 * @param {unknown} value
 */
function setProperty(node, name, value) {
  if (name.startsWith("on") || LIVE_PROPERTIES.has(name)) /** @type {any} */ (node)[name] = value;
  else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : String(value));
}

/**
 * An element of page.html.
 *
 * @param {string} id
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`page.html has no #${id}`);
  return found;
}

/**
 * A dialog of page.html.
 *
 * @param {"help" | "clients" | "fork-dialog" | "predict"} id
 */
export const dialogOf = (id) => /** @type {HTMLDialogElement} */ (byId(id));

/**
 * A button with a text.
 *
 * @param {string} text
 * @param {Props["onclick"]} onclick
 * @param {Props} props
 */
export const button = (text, onclick, props = {}) =>
  h("button", { type: "button", onclick, ...props }, text);

/**
 * The head of a table, with a column for each name.
 *
 * @param {...string} names
 */
export const tableHead = (...names) =>
  h(
    "thead",
    null,
    h(
      "tr",
      null,
      names.map((name) => h("th", { key: name, scope: "col" }, name)),
    ),
  );

/**
 * What Enter does on an element that is no button.
 *
 * @param {(event: any) => void} action
 * @returns {(event: KeyboardEvent) => void}
 */
export const onEnter = (action) => (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  event.stopPropagation();
  action(event);
};
