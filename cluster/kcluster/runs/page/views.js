// @ts-check
// The views of the page: their tabs, and what each registers of itself.

/** @import { ClientCard, Tab, View } from "./types.js" */

/** @type {Tab[]} */
const TABS = [
  { key: "timeline", title: "Timeline", isOfRun: true },
  { key: "partition", title: "Partition" },
  { key: "cluster", title: "Cluster" },
  { key: "client", title: "Client" },
  { key: "groups", title: "Groups" },
  { key: "security", title: "Security", isNeeded: (model) => model.isSecured },
];

/** @type {Map<string, View>} */
const registered = new Map();

/**
 * The tabs that a page offers, in order.
 *
 * @param {boolean} isRun whether the page carries a run
 */
export const tabsOf = (isRun) => TABS.filter((tab) => isRun || !tab.isOfRun);

/**
 * Each view is a file in views/, which calls this.
 *
 * @param {string} key
 * @param {View} view
 */
export const registerView = (key, view) => registered.set(key, view);

/**
 * A view; an empty one if its code is not there yet.
 *
 * @param {string} key
 * @returns {View}
 */
export const viewOf = (key) => registered.get(key) ?? { tree: () => [] };

/** @type {ClientCard[]} */
const cards = [];

/**
 * Add something to the view of a client; a view that not every page has calls this.
 *
 * @param {ClientCard} card
 */
export const registerCard = (card) => cards.push(card);

/**
 * What is added to the view of a client.
 *
 * @type {ClientCard}
 */
export const cardsOf = (page, client) => cards.map((card) => card(page, client));
