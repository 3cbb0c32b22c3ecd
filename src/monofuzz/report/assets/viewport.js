// @ts-check
// Which part of a range is looked at.

const still = matchMedia("(prefers-reduced-motion: reduce)");
const GLIDE = 260; // milliseconds

/** A window `[lo, hi]` on `[first, last]`, never narrower than `narrowest`. */
class Viewport {
  /** @param {number} first @param {number} last @param {number} narrowest */
  constructor(first, last, narrowest) {
    this.first = this.lo = first;
    this.last = this.hi = last;
    this.narrowest = Math.min(narrowest, last - first);
    /** @type {Set<() => void>} */
    this.listeners = new Set();
    this._gliding = 0;
  }

  get span() {
    return this.hi - this.lo;
  }

  get middle() {
    return (this.lo + this.hi) / 2;
  }

  get whole() {
    return this.lo <= this.first && this.hi >= this.last;
  }

  /** @param {number} lo @param {number} hi */
  set(lo, hi) {
    cancelAnimationFrame(this._gliding);
    this._put(lo, hi);
  }

  /** @param {number} lo @param {number} hi @returns {[number, number]} */
  _inside(lo, hi) {
    const span = Math.min(Math.max(hi - lo, this.narrowest), this.last - this.first);
    const start = (lo + hi - span) / 2;
    const kept = Math.min(Math.max(start, this.first), this.last - span);
    return [kept, kept + span];
  }

  /** @param {number} lo @param {number} hi */
  _put(lo, hi) {
    const [low, high] = this._inside(lo, hi);
    if (low === this.lo && high === this.hi) return;
    this.lo = low;
    this.hi = high;
    for (const listener of this.listeners) listener();
  }

  /** Narrow the window by a factor; `anchor` stays where it is. @param {number} factor
   * @param {number} [anchor] */
  zoom(factor, anchor = this.middle) {
    const span = Math.min(Math.max(this.span / factor, this.narrowest), this.last - this.first);
    const place = (anchor - this.lo) / this.span;
    this.set(anchor - place * span, anchor + (1 - place) * span);
  }

  /** Move the window by a part of its width; how far it really went. @param {number} part */
  pan(part) {
    const before = this.lo;
    const step = part * this.span;
    this.set(this.lo + step, this.hi + step);
    return this.lo - before;
  }

  /** Go to a window smoothly, if it is in sight. @param {number} lo @param {number} hi */
  glide(lo, hi) {
    cancelAnimationFrame(this._gliding);
    const [toLo, toHi] = this._inside(lo, hi);
    const [fromLo, fromHi] = [this.lo, this.hi];
    const [from, to] = [fromHi - fromLo, toHi - toLo];
    const apart = toLo > fromHi || toHi < fromLo;
    if (still.matches || apart || (from === to && toLo === fromLo)) {
      this._put(toLo, toHi);
      return;
    }
    const begun = performance.now();
    const step = (/** @type {number} */ now) => {
      const part = Math.min(Math.max((now - begun) / GLIDE, 0), 1);
      if (part === 1) {
        this._put(toLo, toHi);
        return;
      }
      const eased = part * part * (3 - 2 * part);
      const span = from * (to / from) ** eased;
      const moved = Math.abs(from - to) < 1e-9 * from ? eased : (from - span) / (from - to);
      const start = fromLo + (toLo - fromLo) * moved;
      this._put(start, start + span);
      this._gliding = requestAnimationFrame(step);
    };
    this._gliding = requestAnimationFrame(step);
  }

  /** Show all. */
  reset() {
    this.glide(this.first, this.last);
  }

  /** Show a range with some room around it. @param {number} lo @param {number} hi
   * @param {number} [room] how many times its width to show */
  frame(lo, hi, room = 2.5) {
    const half = Math.max(((hi - lo) * room) / 2, this.narrowest / 2);
    const middle = (lo + hi) / 2;
    this.glide(middle - half, middle + half);
  }
}
