// @ts-check
// Starts the page.

import { byId, patch } from "./dom.js";
import { Page } from "./page.js";
import { epochPatterns } from "./words.js";

const page = new Page();
Object.assign(window, { kclusterPage: page });
patch(byId("patterns"), [epochPatterns()]);
addEventListener("keydown", (event) => page.key(event));
addEventListener("resize", () => page.redraw());
page.connection?.open();
page.redraw();
