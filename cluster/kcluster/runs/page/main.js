// @ts-check
// The page of a cluster, as its server serves it: every view, and what can be asked of the cluster.

import "./moments.js";
import { addressOf } from "./connection.js";
import { Controls } from "./controls.js";
import { byId } from "./dom.js";
import { Page, start } from "./page.js";
import { scrubOn } from "./scrub.js";
import "./secured.js";
import { Sound } from "./sound.js";

const address = addressOf(location);
const page = new Page(false, address?.id === "play");
if (address) page.controls = new Controls(page, address);
page.sound = new Sound();
scrubOn(page, byId("view"));
start(page);
