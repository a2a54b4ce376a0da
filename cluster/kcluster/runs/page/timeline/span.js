// @ts-check
// The span of time that is visible: what zooming and panning change.

const PAD = 0.012;
const LEAST_MS = 4;
const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5,
  36e5,
];

/**
 * The smallest round step of at least `least` ms: 1, 2 or 5 times a power of ten; above 10 s, of a
 * clock.
 *
 * @param {number} least
 */
export const niceStep = (least) =>
  STEPS.find((step) => step >= least) ?? Math.ceil(least / 36e5) * 36e5;

/** A span of a run, in ms of the cluster's clock, and the pixels that it is drawn on. */
export class Span {
  /**
   * @param {number} began
   * @param {number} end
   */
  constructor(began, end) {
    this.began = began;
    this.end = end;
    const pad = (end - began) * PAD;
    /** The run with a little room at both ends. */
    this.whole = { from: began - pad, to: end + pad };
    this.from = this.whole.from;
    this.to = this.whole.to;
    /** In CSS pixels. */
    this.width = 1;
    /** @param {number} at */
    this.x = (at) => ((at - this.from) / this.length) * this.width;
  }

  get length() {
    return this.to - this.from;
  }
  get isWhole() {
    return this.length >= (this.whole.to - this.whole.from) * 0.999;
  }
  /** @param {number} x */
  timeAt(x) {
    return this.from + (x / this.width) * this.length;
  }
  /**
   * How long some pixels take.
   *
   * @param {number} pixels
   */
  lasting(pixels) {
    return (this.length / this.width) * pixels;
  }

  /**
   * Show a span, kept within the run.
   *
   * @param {number} from
   * @param {number} to
   */
  show(from, to) {
    const { whole } = this;
    const length = Math.min(Math.max(to - from, LEAST_MS), whole.to - whole.from);
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - length / 2, whole.from), whole.to - length);
    this.to = this.from + length;
  }

  /**
   * @param {number} factor
   * @param {number} around the time that stays where it is
   */
  zoom(factor, around = (this.from + this.to) / 2) {
    this.show(around - (around - this.from) * factor, around + (this.to - around) * factor);
  }

  /** @param {number} share of the span's length */
  pan(share) {
    const shift = this.length * share;
    this.show(this.from + shift, this.to + shift);
  }

  /**
   * Widen the span until it includes these times.
   *
   * @param {number[]} times
   */
  include(times) {
    const first = Math.min(...times);
    const last = Math.max(...times);
    if (!times.length || (first >= this.from && last <= this.to)) return;
    const margin = Math.max((last - first) * 0.15, this.length * 0.1);
    this.show(Math.min(first - margin, this.from), Math.max(last + margin, this.to));
  }
}
