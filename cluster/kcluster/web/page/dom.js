// Trees and the document: a view is a function that returns a tree, `patch` makes the document match.
//
// Elements are kept by key from frame to frame, so focus and clicks survive.  Text is only ever
// inserted as text.

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";
const LIVE_PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "selected"]);

/** A tree.  `props`: attributes, `on...` handlers, `key` among its siblings; null children are left out. */
function h(tag, props, ...inside) {
  const { key = "", ...rest } = props ?? {};
  return { tag, key: `${tag} ${key}`, props: rest, inside: present(inside) };
}

const present = (parts) =>
  parts
    .flat(3)
    .filter((part) => part !== null && part !== undefined && part !== false && part !== "");

const keyOf = (tree) => (tree.tag ? tree.key : "#text");

/** Make the children of `parent` match `trees`. */
function patch(parent, trees) {
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

function made(tree, parent) {
  let node;
  if (!tree.tag) node = document.createTextNode("");
  else if (tree.tag === "svg" || parent.namespaceURI === SVG_NAMESPACE) {
    node = document.createElementNS(SVG_NAMESPACE, tree.tag);
  } else node = document.createElement(tree.tag);
  node.treeKey = keyOf(tree);
  node.treeProps = {};
  return node;
}

function update(node, tree) {
  if (!tree.tag) {
    const text = String(tree);
    if (node.data !== text) node.data = text;
    return;
  }
  for (const name of Object.keys(node.treeProps)) {
    if (!(name in tree.props)) setProperty(node, name, null);
  }
  for (const [name, value] of Object.entries(tree.props)) {
    if (node.treeProps[name] !== value) setProperty(node, name, value);
  }
  node.treeProps = tree.props;
  patch(node, tree.inside);
}

function setProperty(node, name, value) {
  if (name.startsWith("on") || LIVE_PROPERTIES.has(name)) node[name] = value;
  else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : value);
}

const byId = (id) => document.getElementById(id);

/** A button with a text; `props` may have a class and labels. */
const button = (text, onclick, props = {}) =>
  h("button", { type: "button", onclick, ...props }, text);

/** What Enter and space do on an element that is no button. */
const onEnter = (action) => (event) => {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  event.stopPropagation();
  action(event);
};
