// @ts-check
// The only script of a run's page that is not packed: it unpacks the next.

import { insert } from "./carried.js";

insert("script", "recorded");
