// The visible span of time, and how wheel, drag and keys change it.

const PAD = 0.012;
const WHOLE = { from: -run.end * PAD, to: run.end * (1 + PAD) };
const LEAST_MS = 4;
const view = { from: WHOLE.from, to: WHOLE.to, width: 1 };
const ADDRESS_AFTER_MS = 500;
let drawSoon = false;
let addressTimer = 0;

const xOf = (at) => (at - view.from) / (view.to - view.from) * view.width;
const timeAt = (x) => view.from + x / view.width * (view.to - view.from);

/** Show a span of time, kept within the run.  What the pointer was on is elsewhere then. */
function show(from, to) {
  const whole = WHOLE.to - WHOLE.from;
  const span = Math.min(Math.max(to - from, LEAST_MS), whole);
  const middle = (from + to) / 2;
  view.from = Math.min(Math.max(middle - span / 2, WHOLE.from), WHOLE.to - span);
  view.to = view.from + span;
  clearTimeout(addressTimer);
  addressTimer = setTimeout(toAddress, ADDRESS_AFTER_MS);
  leave();
  redraw();
}

/** Put the view into the address, once it rests: browsers limit how often that may happen. */
function toAddress() {
  const isWhole = view.to - view.from >= (WHOLE.to - WHOLE.from) * 0.999;
  const shown = `#t=${Math.round(view.from)}-${Math.round(view.to)}`;
  history.replaceState(null, "", isWhole ? location.pathname + location.search : shown);
}

const showAll = () => show(WHOLE.from, WHOLE.to);

function zoom(factor, around = (view.from + view.to) / 2) {
  show(around - (around - view.from) * factor, around + (view.to - around) * factor);
}

function pan(share) {
  const shift = (view.to - view.from) * share;
  show(view.from + shift, view.to + shift);
}

/** Scroll a time into view; the zoom stays as it is if the time is already visible. */
function reveal(at) {
  const span = view.to - view.from;
  if (at < view.from || at > view.to) show(at - span / 2, at + span / 2);
}

function fromAddress() {
  const found = /^#t=(-?\d+)-(-?\d+)$/.exec(location.hash);
  if (found) show(Number(found[1]), Number(found[2]));
}

/** Draw in the next frame, once, however often this is called. */
function redraw() {
  if (drawSoon) return;
  drawSoon = true;
  requestAnimationFrame(() => {
    drawSoon = false;
    drawAll();
  });
}

// ----------------------------------------------------------------------------- wheel and drag

/** `plot`: () -> the screen rectangle of the canvases; `hover` and `pick` get (event, at). */
function watchPointer(sheet, brush, plot, { hover, leave, pick }) {
  let drag = null;
  const inPlots = (event) => event.target.closest(".plot") || event.target.id === "axis";
  sheet.addEventListener("wheel", (event) => {
    if (!inPlots(event)) return;
    event.preventDefault();
    const { left } = plot();
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (Math.abs(sideways) > Math.abs(event.deltaY) || event.shiftKey) {
      pan(sideways / view.width);
    } else {
      zoom(Math.exp(Math.sign(event.deltaY) * Math.min(Math.abs(event.deltaY), 120) * 0.0022),
        timeAt(event.clientX - left));
    }
    hover(event, timeAt(event.clientX - left));
  }, { passive: false });

  sheet.addEventListener("pointerdown", (event) => {
    if (!inPlots(event) || event.button > 1) return;
    const pans = event.shiftKey || event.button === 1 || event.pointerType === "touch";
    drag = { x: event.clientX, from: view.from, to: view.to, pans, moved: false };
    event.preventDefault();
    document.getElementById("scroll").focus({ preventScroll: true });
  });
  window.addEventListener("pointermove", (event) => {
    const { left } = plot();
    if (!drag) {
      if (inPlots(event)) hover(event, timeAt(event.clientX - left));
      else leave();
      return;
    }
    drag.moved ||= Math.abs(event.clientX - drag.x) > 4;
    if (!drag.moved) return;
    leave();
    if (drag.pans) {
      const shift = (drag.x - event.clientX) / view.width * (drag.to - drag.from);
      show(drag.from + shift, drag.to + shift);
    } else {
      const sheetLeft = sheet.getBoundingClientRect().left;
      const x0 = Math.max(Math.min(drag.x, event.clientX), left);
      const x1 = Math.max(drag.x, event.clientX, left);
      Object.assign(brush.style, {
        display: "block", left: `${x0 - sheetLeft}px`, width: `${x1 - x0}px`,
      });
    }
  });
  window.addEventListener("pointerup", (event) => {
    if (!drag) return;
    const { left } = plot();
    const [first, last] = [drag.x, event.clientX].sort((a, b) => a - b);
    if (!drag.moved) pick(event, timeAt(event.clientX - left));
    else if (!drag.pans) show(timeAt(first - left), timeAt(last - left));
    brush.style.display = "none";
    drag = null;
  });
  sheet.addEventListener("dblclick", (event) => { if (inPlots(event)) showAll(); });
  sheet.addEventListener("pointerleave", leave);
}

/** Dragging on the overview moves the view, or zooms in if the whole run is visible. */
function watchMap(map) {
  let held = false;
  const center = (event) => {
    const place = map.getBoundingClientRect();
    const share = (event.clientX - place.left) / place.width;
    const middle = WHOLE.from + share * (WHOLE.to - WHOLE.from);
    const whole = WHOLE.to - WHOLE.from;
    const span = view.to - view.from >= whole * 0.999 ? whole / 8 : view.to - view.from;
    show(middle - span / 2, middle + span / 2);
  };
  map.addEventListener("pointerdown", (event) => {
    held = true;
    map.setPointerCapture(event.pointerId);
    center(event);
  });
  map.addEventListener("pointermove", (event) => { if (held) center(event); });
  map.addEventListener("pointerup", () => { held = false; });
}

// --------------------------------------------------------------------------------------- keys

/** Keyboard control; `more`: additional actions by key. */
function watchKeys(more) {
  const keys = {
    ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15), a: () => pan(-0.15),
    d: () => pan(0.15), "+": () => zoom(0.6), "=": () => zoom(0.6), w: () => zoom(0.6),
    "-": () => zoom(1 / 0.6), s: () => zoom(1 / 0.6), 0: showAll, Home: showAll, ...more,
  };
  window.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "INPUT") return;
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
