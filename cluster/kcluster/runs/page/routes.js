// @ts-check
// Routes between boxes that lead through no other box.

/** @import { Box, Point, Route } from "./types.js" */

/** The bends that are tried, as shares of the distance: the smallest that is free is taken. */
const SIZES = [0.08, 0.14, 0.2, 0.27, 0.34, 0.42, 0.5, 0.6, 0.72, 0.85, 1, 1.2];
const BENDS = [0, ...SIZES.flatMap((size) => [size, -size])];
/** The places of the bend that are tried, as shares of the distance. */
const ALONG = [0.5, 0.35, 0.65, 0.2, 0.8, 0, 1, -0.2, 1.2, -0.4, 1.4];
const CANDIDATES = BENDS.flatMap((bend) =>
  (bend ? ALONG : [0.5]).map((along) => ({ bend, along })),
);
const STEPS = 36;
/** The room between a route and a box that it passes. */
const MARGIN_PX = 7;

/**
 * The route from one box to another, around the others, from edge to edge.
 *
 * @param {Box} from
 * @param {Box} to
 * @param {Box[]} others
 * @param {{ width: number, height: number }} stage
 * @returns {Route}
 */
export function routeAround(from, to, others, stage) {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const across = { x: -(to.y - from.y) / length, y: (to.x - from.x) / length };
  let best = /** @type {{ route: Route, hits: number } | null} */ (null);
  for (const { bend, along } of CANDIDATES) {
    const middle = {
      x: from.x + (to.x - from.x) * along + across.x * bend * length,
      y: from.y + (to.y - from.y) * along + across.y * bend * length,
    };
    const curve = Array.from({ length: STEPS + 1 }, (_, step) =>
      onCurve(from, middle, to, step / STEPS),
    );
    const points = betweenEdges(curve, from, to);
    const hits = points.filter(
      (point) =>
        others.some((box) => isInside(point, box, MARGIN_PX)) ||
        point.x < 2 ||
        point.y < 2 ||
        point.x > stage.width - 2 ||
        point.y > stage.height - 2,
    ).length;
    if (points.length < 2) continue;
    if (!best || hits < best.hits) best = { route: routeOf(points), hits };
    if (!hits) break;
  }
  return best?.route ?? routeOf([from, to]);
}

/**
 * The part of a curve between the edges of the boxes at its ends.
 *
 * @param {Point[]} curve
 * @param {Box} from
 * @param {Box} to
 */
function betweenEdges(curve, from, to) {
  const first = curve.findIndex((point) => !isInside(point, from, 0));
  const last = curve.findLastIndex((point) => !isInside(point, to, 0));
  if (first < 1 || last < first || last > curve.length - 2) return [];
  const start = atEdge(curve[first - 1], curve[first], from),
    end = atEdge(curve[last + 1], curve[last], to);
  return [start, ...curve.slice(first, last + 1), end];
}

/**
 * The point at which the line from a point inside a box to a point outside leaves the box.
 *
 * @param {Point} inside
 * @param {Point} outside
 * @param {Box} box
 */
function atEdge(inside, outside, box) {
  let low = inside,
    high = outside;
  for (let i = 0; i < 8; i++) {
    const middle = { x: (low.x + high.x) / 2, y: (low.y + high.y) / 2 };
    if (isInside(middle, box, 0)) low = middle;
    else high = middle;
  }
  return high;
}

/**
 * @param {Point} a
 * @param {Point} b the control point
 * @param {Point} c
 * @param {number} share
 */
function onCurve(a, b, c, share) {
  const rest = 1 - share;
  return {
    x: rest * rest * a.x + 2 * rest * share * b.x + share * share * c.x,
    y: rest * rest * a.y + 2 * rest * share * b.y + share * share * c.y,
  };
}

/**
 * @param {Point} point
 * @param {Box} box
 * @param {number} margin
 */
const isInside = (point, box, margin) =>
  Math.abs(point.x - box.x) < box.width / 2 + margin &&
  Math.abs(point.y - box.y) < box.height / 2 + margin;

/**
 * The route along points.
 *
 * @param {Point[]} points
 * @returns {Route}
 */
export function routeOf(points) {
  const lengths = [0];
  for (const [index, point] of points.entries()) {
    if (!index) continue;
    const before = points[index - 1];
    lengths.push(lengths[index - 1] + Math.hypot(point.x - before.x, point.y - before.y));
  }
  return { points, lengths };
}

/**
 * The point of a route at a share of its length.
 *
 * @param {Route} route
 * @param {number} share
 * @returns {Point}
 */
export function pointAt({ points, lengths }, share) {
  const wanted = Math.min(Math.max(share, 0), 1) * lengths[lengths.length - 1];
  let next = 1;
  while (next < points.length - 1 && lengths[next] < wanted) next += 1;
  const span = lengths[next] - lengths[next - 1] || 1;
  const part = (wanted - lengths[next - 1]) / span;
  const from = points[next - 1],
    to = points[next];
  return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part };
}

/**
 * A route as the `d` of an SVG path.
 *
 * @param {Route} route
 */
export const pathOf = ({ points }) =>
  `M${points.map(({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;
