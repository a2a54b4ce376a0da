// @ts-check
// The only script of a run's page that is not packed: it unpacks the next.

import { run } from "./carried.js";

run("recorded");
