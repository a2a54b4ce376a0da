// Colours, times as text, and the shapes that lanes are drawn with.

const PALETTE = [
  "#4c8dd6", "#e0842a", "#36a196", "#a071c6", "#c39a1c", "#d5659a", "#8d6f5c", "#6a7f9b",
];
const FONT = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const colours = {};
let hatches = {};

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["back", "lane", "line", "text", "dim", "accent", "bad", "warn", "good",
    "read", "gone", "wait"]) {
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
  colours.plain = colours.accent;
  hatches = {};
}

/** The colour of a broker, the same in all lanes. */
function brokerColour(id) {
  const place = data.brokers.findIndex((broker) => broker.id === id);
  if (place < 0) return colours.gone;
  return PALETTE[place] ?? `hsl(${(place * 137.5) % 360} 45% 52%)`;
}

/** Diagonal lines of a colour; `rising` from the lower left. */
function hatch(context, colour, rising) {
  const key = `${colour}${rising}`;
  if (hatches[key]) return hatches[key];
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const draw = tile.getContext("2d");
  draw.strokeStyle = colour;
  draw.lineWidth = 1.6;
  for (const shift of [-8, 0, 8]) {
    draw.moveTo(shift, rising ? 8 : 0);
    draw.lineTo(shift + 8, rising ? 0 : 8);
  }
  draw.stroke();
  return (hatches[key] = context.createPattern(tile, "repeat"));
}

/** A cleared canvas at its size on the screen, in CSS pixels; null if it is not visible. */
function prepared(canvas) {
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (!width || !height) return null;
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = "middle";
  return { context, width, height };
}

/** Text truncated to a width; empty if not even three letters fit. */
function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  for (let length = text.length - 1; length >= 3; length--) {
    const shorter = `${text.slice(0, length).trimEnd()}…`;
    if (context.measureText(shorter).width <= width) return shorter;
  }
  return "";
}

function box(context, x0, x1, y, height, fill) {
  context.fillStyle = fill;
  context.fillRect(x0, y, Math.max(x1 - x0, 1), height);
}

/** Text inside a bar, kept visible while the bar is partly outside the view. */
function inBar(context, text, x0, x1, y, colour) {
  const left = Math.max(x0, 0) + 5;
  const shown = fitted(context, text, x1 - left - 3);
  if (!shown) return;
  context.fillStyle = colour;
  context.fillText(shown, left, y);
}

/** A diamond, which marks an event. */
function diamond(context, x, y, size, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x, y - size);
  context.lineTo(x + size, y);
  context.lineTo(x, y + size);
  context.lineTo(x - size, y);
  context.fill();
}

// ------------------------------------------------------------------------------------ times

/** The smallest round step of at least `least` ms: 1, 2 or 5 times a power of ten; above 10 s, of a clock. */
function niceStep(least) {
  for (const step of [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4,
    3e5, 6e5, 18e5, 36e5]) {
    if (step >= least) return step;
  }
  return Math.ceil(least / 36e5) * 36e5;
}

/** `12.345 s`, with as many digits as the step needs; `2:05` min in runs of many minutes. */
function clock(at, step = 1) {
  const digits = step >= 1000 ? 0 : step >= 100 ? 1 : step >= 10 ? 2 : 3;
  if (run.end < 300e3) return `${(at / 1000).toFixed(digits)} s`;
  const minutes = Math.trunc(at / 60e3);
  const seconds = (Math.abs(at) % 60e3) / 1000;
  return `${minutes}:${seconds.toFixed(digits).padStart(digits ? digits + 3 : 2, "0")}`;
}

/** A duration: `9,517 ms`, `12.4 s`, `3 min 5 s`. */
function lasting(ms) {
  if (ms < 10e3) return `${Math.round(ms).toLocaleString("en")} ms`;
  if (ms < 120e3) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60e3)} min ${Math.round((ms % 60e3) / 1000)} s`;
}

const many = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
