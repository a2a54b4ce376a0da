// @ts-check
// The views of one moment, and the patterns that they draw with.

import { byId, patch } from "./dom.js";
import { epochPatterns } from "./epochs.js";
import "./views/client.js";
import "./views/cluster.js";
import "./views/groups.js";
import "./views/partition.js";

patch(byId("patterns"), [epochPatterns()]);
