// @ts-check
// What only the page of a cluster with security has.

import "./views/security.js";
