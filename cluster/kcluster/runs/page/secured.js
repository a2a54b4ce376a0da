// @ts-check
// The entry of the modules that only the page of a cluster with security has.

import "./views/security.js";
