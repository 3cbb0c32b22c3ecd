// @ts-check
// Where marks stand on an axis, and what they say.

/** @typedef {{at: number, text: string}} Tick */

/** The smallest round number (1, 2, 5 times a power of ten) from `rough` on. @param {number} rough */
function roundStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  for (const factor of [1, 2, 5]) if (power * factor >= rough * 0.999999) return power * factor;
  return power * 10;
}

/** @param {number} value @param {number} digits */
function fixed(value, digits) {
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Round numbers in a range, at most `count` of them.
 * @param {number} lo @param {number} hi @param {number} count @returns {Tick[]} */
function plainTicks(lo, hi, count) {
  const step = roundStep((hi - lo) / Math.max(count, 1));
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  /** @type {Tick[]} */
  const ticks = [];
  for (let number = Math.ceil(lo / step); number * step <= hi; number += 1) {
    ticks.push({ at: number * step, text: digits ? fixed(number * step, digits) : exact(number * step) });
  }
  return ticks;
}

/** Whole numbers in a range, at most `count` of them.
 * @param {number} lo @param {number} hi @param {number} count @returns {Tick[]} */
function wholeTicks(lo, hi, count) {
  const step = Math.max(1, roundStep((hi - lo) / Math.max(count, 1)));
  /** @type {Tick[]} */
  const ticks = [];
  for (let number = Math.ceil(lo / step); number * step <= hi; number += 1) {
    ticks.push({ at: number * step, text: exact(number * step) });
  }
  return ticks;
}

/** Budgets in the largest binary unit of which the range holds several; then byte by byte.
 * @param {number} lo @param {number} hi @param {number} count @returns {Tick[]} */
function byteTicks(lo, hi, count) {
  let unit = 0;
  while (unit < UNITS.length - 1 && hi - lo > 2 * 1024 ** (unit + 1)) unit += 1;
  if (!unit) return wholeTicks(lo, hi, count);
  const scale = 1024 ** unit;
  return plainTicks(lo / scale, hi / scale, count).map(({ at, text }) => ({
    at: at * scale,
    text: `${text} ${UNITS[unit]}`,
  }));
}

/** A vertical axis of overheads: logarithmic, unless something costs nothing. */
class CostAxis {
  /** @param {number} least @param {number} greatest */
  constructor(least, greatest) {
    if (!(least <= greatest)) [least, greatest] = [1, 2];
    this.logarithmic = least > 0;
    if (this.logarithmic) {
      const room = Math.max(Math.log(greatest / least), 0.02);
      this.low = least * Math.exp(-0.06 * room);
      this.high = greatest * Math.exp(0.08 * room);
      this._base = Math.log(this.low);
      this._span = Math.log(this.high / this.low);
    } else {
      const room = Math.max(greatest - least, 0.1);
      this.low = this._base = least - 0.05 * room;
      this.high = greatest + 0.08 * room;
      this._span = this.high - this.low;
    }
  }

  /** The height of a value, 0 at the bottom and 1 at the top. @param {number} value */
  place(value) {
    return ((this.logarithmic ? Math.log(value) : value) - this._base) / this._span;
  }

  /** @param {number} count @returns {Tick[]} */
  ticks(count) {
    if (!this.logarithmic || this.high / this.low < 4) return plainTicks(this.low, this.high, count);
    const steps = this.high / this.low > 40 || count < 4 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 7];
    /** @type {Tick[]} */
    const ticks = [];
    for (let power = Math.floor(Math.log10(this.low)); 10 ** power <= this.high; power += 1) {
      for (const step of steps) {
        const at = Number((step * 10 ** power).toPrecision(2));
        if (at >= this.low && at <= this.high) ticks.push({ at, text: String(at) });
      }
    }
    return ticks;
  }
}
