// @ts-check
// Colours, and the shapes that lanes are drawn with.

import { CROWN } from "../marks.js";

/** @import { Mood, Surface } from "../types.js" */

const PALETTE = [
  "#4c8dd6",
  "#e0842a",
  "#36a196",
  "#a071c6",
  "#c39a1c",
  "#d5659a",
  "#8d6f5c",
  "#6a7f9b",
];
export const FONT = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
/** The colours of the page by the names of their custom properties. */
export const colours = {
  back: "",
  lane: "",
  line: "",
  text: "",
  dim: "",
  accent: "",
  bad: "",
  warn: "",
  good: "",
  read: "",
  gone: "",
  wait: "",
  crown: "",
};
/** @type {Map<string, CanvasPattern | string>} */
const hatches = new Map();

/** Read the colours of the present theme. */
export function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of /** @type {(keyof typeof colours)[]} */ (Object.keys(colours))) {
    const colour = style.getPropertyValue(`--${name}`).trim();
    if (colours[name] !== colour) hatches.clear();
    colours[name] = colour;
  }
}

/** @param {Mood} mood */
export const moodColour = (mood) => (mood === "plain" ? colours.accent : colours[mood]);

/**
 * The colour of a broker, the same in all lanes.
 *
 * @param {number} place among the brokers; -1 for none
 */
export const brokerColour = (place) =>
  place < 0 ? colours.gone : (PALETTE[place] ?? `hsl(${(place * 137.5) % 360} 45% 52%)`);

/**
 * Diagonal lines of a colour.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {string} colour
 * @param {boolean} rising from the lower left
 */
export function hatch(context, colour, rising) {
  const key = `${colour}${rising}`;
  const found = hatches.get(key);
  if (found) return found;
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const draw = contextOf(tile);
  draw.strokeStyle = colour;
  draw.lineWidth = 1.6;
  for (const shift of [-8, 0, 8]) {
    draw.moveTo(shift, rising ? 8 : 0);
    draw.lineTo(shift + 8, rising ? 0 : 8);
  }
  draw.stroke();
  const made = context.createPattern(tile, "repeat") ?? colour;
  hatches.set(key, made);
  return made;
}

/** @param {HTMLCanvasElement} canvas */
function contextOf(canvas) {
  const context = canvas.getContext("2d");
  if (!context) throw new Error("this browser draws on no canvas");
  return context;
}

/**
 * An element as the canvas that it is.
 *
 * @param {Element | null} element
 */
export function canvasOf(element) {
  if (!(element instanceof HTMLCanvasElement)) throw new Error("a lane has no canvas");
  return element;
}

/**
 * A canvas and its size on the screen, in CSS pixels.  All are measured before one is prepared, as
 * the browser lays out the page again for the first size that is asked after a change.
 *
 * @param {HTMLCanvasElement} canvas
 */
export const measured = (canvas) => ({
  canvas,
  width: canvas.clientWidth,
  height: canvas.clientHeight,
});

/**
 * A cleared canvas; null if it is not visible.
 *
 * @param {ReturnType<typeof measured>} size
 * @param {Pick<Surface, "x" | "from" | "to">} span
 * @returns {Surface | null}
 */
export function prepared({ canvas, width, height }, { x, from, to }) {
  if (!width || !height) return null;
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = contextOf(canvas);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = "middle";
  return { context, width, height, x, from, to };
}

/**
 * Text truncated to a width; empty if not even three letters fit.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {string} text
 * @param {number} width
 */
export function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  for (let length = text.length - 1; length >= 3; length--) {
    const shorter = `${text.slice(0, length).trimEnd()}…`;
    if (context.measureText(shorter).width <= width) return shorter;
  }
  return "";
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x0
 * @param {number} x1
 * @param {number} y
 * @param {number} height
 * @param {string | CanvasPattern} fill
 */
export function box(context, x0, x1, y, height, fill) {
  context.fillStyle = fill;
  context.fillRect(x0, y, Math.max(x1 - x0, 1), height);
}

/**
 * Text inside a bar, kept visible while the bar is partly outside the view.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {string} text
 * @param {number} x0
 * @param {number} x1
 * @param {number} y
 * @param {string} colour
 */
export function inBar(context, text, x0, x1, y, colour) {
  const left = Math.max(x0, 0) + 5;
  const shown = fitted(context, text, x1 - left - 3);
  if (!shown) return;
  context.fillStyle = colour;
  context.fillText(shown, left, y);
}

/**
 * Text on a plate of the lane's colour, at the left of a bar.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {string} text
 * @param {number} x0
 * @param {number} x1
 * @param {string} colour
 */
export function onPlate(context, text, x0, x1, colour) {
  const left = Math.max(x0, 0) + 3;
  const shown = fitted(context, text, x1 - left - 8);
  if (!shown) return;
  box(context, left, left + context.measureText(shown).width + 6, 6, 16, colours.lane);
  context.fillStyle = colour;
  context.fillText(shown, left + 3, 14);
}

/**
 * A diamond, which marks an event.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} y
 * @param {number} size
 * @param {string} colour
 */
export function diamond(context, x, y, size, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x, y - size);
  context.lineTo(x + size, y);
  context.lineTo(x, y + size);
  context.lineTo(x - size, y);
  context.fill();
}

/**
 * A crown, which marks an election, with an edge that is seen on a bar of any colour.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} y
 */
export function crownMark(context, x, y) {
  const outline = new Path2D(`M${x - 3} ${y + 5}${CROWN}`);
  context.save();
  context.lineJoin = "round";
  context.strokeStyle = colours.lane;
  context.lineWidth = 3;
  context.stroke(outline);
  context.restore();
  context.fillStyle = colours.crown;
  context.fill(outline);
}

/**
 * Clip drawing to these spans until `restore`.
 *
 * @param {Surface} surface
 * @param {{ from: number, to: number }[]} spans
 */
export function clipToSpans({ context, height, x }, spans) {
  context.beginPath();
  for (const { from, to } of spans) {
    context.rect(x(from) - 1, 0, Math.max(x(to) - x(from), 1) + 2, height);
  }
  context.clip();
}
