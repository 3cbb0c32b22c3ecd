// @ts-check
// Drawing: overhead against budget, what fails, axes, and what is pointed at.

const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const FAILING = /** @type {Kind[]} */ (["oom", "hole", "thrashed", "timeout"]);
/** How strongly the whole height is tinted. @type {Record<string, number>} */
const TINT = { oom: 0.13, hole: 0.3, thrashed: 0.26, timeout: 0.26 };

/** @type {Record<string, string>} */
let colours = {};

/** Read the colours of the theme that is shown. */
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ok", "oom", "hole", "thrashed", "timeout", "gap", "cliff", "text", "faint", "grid", "card"];
  colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** @type {Set<() => void>} */
const waiting = new Set();

/** Draw with the next frame, once however often it is asked for. @param {() => void} draw */
function soon(draw) {
  if (!waiting.size) {
    requestAnimationFrame(() => {
      const all = [...waiting];
      waiting.clear();
      for (const one of all) one();
    });
  }
  waiting.add(draw);
}

/** A canvas as sharp as the screen. */
class Sheet {
  /** @param {string} name */
  constructor(name) {
    this.canvas = h("canvas", { class: name, "aria-hidden": "true" });
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    this.scale = 1;
  }

  /** Clear it for drawing in pixels of the page. @param {number} width @param {number} height */
  begin(width, height) {
    this.scale = devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * this.scale), Math.round(height * this.scale)];
    if (this.canvas.width !== wide || this.canvas.height !== high) {
      this.canvas.width = wide;
      this.canvas.height = high;
    }
    const context = this.context;
    context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = FONT;
    context.textBaseline = "middle";
    return context;
  }
}

/** @typedef {{left: number, right: number, top: number, bottom: number, strip: number,
 *   lane: number}} Frame */

/** @type {Frame} */
const LARGE = { left: 46, right: 14, top: 26, bottom: 38, strip: 8, lane: 18 };
/** @type {Frame} */
const SMALL = { left: 30, right: 8, top: 4, bottom: 20, strip: 5, lane: 10 };

/** One chart: a sheet for the map, and one above it for what is pointed at. */
class Plot {
  /** @param {RegimeMap} map @param {CostAxis} axis @param {Frame} frame */
  constructor(map, axis, frame) {
    this.map = map;
    this.axis = axis;
    this.frame = frame;
    this.base = new Sheet("base");
    this.over = new Sheet("over");
    this.element = h("div", { class: "plot" }, this.base.canvas, this.over.canvas);
    this.columns = new Columns(0);
    this.lo = map.between[0];
    this.hi = map.between[1];
    this.width = this.height = 0;
    /** Whether the axis of overheads follows what is shown. */
    this.fitted = false;
    /** @type {number | null} */ this.pointed = null;
    /** @type {number | null} */ this.cursor = null;
  }

  /** Take the size that the page gives; false while it gives none. */
  measure() {
    this.width = this.element.clientWidth;
    this.height = this.element.clientHeight;
    return this.width > this.frame.left + this.frame.right && this.height > 0;
  }

  get inner() {
    return this.width - this.frame.left - this.frame.right;
  }

  get plotTop() {
    return this.frame.top + this.frame.lane;
  }

  get plotBottom() {
    return this.height - this.frame.bottom - this.frame.strip;
  }

  /** @param {number} budget */
  xOf(budget) {
    return this.frame.left + ((budget - this.lo) / (this.hi - this.lo)) * this.inner;
  }

  /** @param {number} x */
  budgetAt(x) {
    return this.lo + ((x - this.frame.left) / this.inner) * (this.hi - this.lo);
  }

  /** The whole budget at a place. @param {number} x */
  wholeAt(x) {
    const [first, last] = this.map.between;
    return Math.min(Math.max(Math.floor(this.budgetAt(x)), first), last - 1);
  }

  /** @param {number} cost */
  yOf(cost) {
    const bottom = this.plotBottom;
    return bottom - this.axis.place(cost) * (bottom - this.plotTop);
  }

  /** Draw the map from `lo` to `hi`. @param {number} lo @param {number} hi */
  draw(lo, hi) {
    this.lo = lo;
    this.hi = hi;
    if (!this.measure()) return;
    const pen = this.base.begin(this.width, this.height);
    const pixels = Math.max(1, Math.round(this.inner * this.base.scale));
    this.columns = new Columns(pixels);
    this.columns.fill(this.map, lo, hi);
    if (this.fitted) this.axis = this.columns.axis();
    this._shade(pen);
    this._drawCosts(pen);
    this._curve(pen);
    this._strip(pen);
    this._budgets(pen);
    this._holes(pen);
    this._cliffs(pen);
    this.drawOver();
  }

  /** Where columns lie on the page. @param {number} first @param {number} end
   * @param {number} [narrowest] @returns {[number, number]} */
  _stretch(first, end, narrowest = 0) {
    const unit = this.inner / this.columns.width;
    const x = this.frame.left + first * unit;
    const width = (end - first) * unit;
    if (width >= narrowest) return [x, width];
    // On whole pixels of the screen, so that what is thin keeps its colour.
    const { scale } = this.base;
    return [Math.round((x - (narrowest - width) / 2) * scale) / scale, Math.ceil(narrowest * scale) / scale];
  }

  /** @param {CanvasRenderingContext2D} pen */
  _shade(pen) {
    const [top, bottom] = [this.plotTop, this.plotBottom];
    for (const kind of FAILING) {
      pen.fillStyle = colours[kind];
      pen.globalAlpha = TINT[kind];
      this.columns.stretches(BIT[kind], (first, end) => {
        const [x, width] = this._stretch(first, end, kind === "oom" ? 0 : 1.5);
        pen.fillRect(x, top, width, bottom - top);
      });
    }
    pen.globalAlpha = 1;
    this.columns.stretches(BIT.gap, (first, end) => this._hatch(pen, ...this._stretch(first, end, 2)));
  }

  /** @param {CanvasRenderingContext2D} pen @param {number} x @param {number} width */
  _hatch(pen, x, width) {
    const [top, bottom] = [this.plotTop, this.plotBottom];
    const height = bottom - top;
    pen.save();
    pen.beginPath();
    pen.rect(x, top, width, height);
    pen.clip();
    pen.beginPath();
    for (let at = Math.floor((x - height) / 7) * 7; at < x + width; at += 7) {
      pen.moveTo(at, bottom);
      pen.lineTo(at + height, top);
    }
    pen.strokeStyle = colours.gap;
    pen.lineWidth = 1;
    pen.stroke();
    pen.restore();
  }

  /** @param {CanvasRenderingContext2D} pen */
  _drawCosts(pen) {
    const small = this.frame === SMALL;
    pen.textAlign = "right";
    pen.lineWidth = 1;
    let above = Infinity;
    for (const { at, text } of this.axis.ticks(Math.max(2, (this.plotBottom - this.plotTop) / 44))) {
      const y = Math.round(this.yOf(at)) + 0.5;
      if (above - y < 14) continue;
      above = y;
      pen.strokeStyle = colours.grid;
      pen.beginPath();
      pen.moveTo(this.frame.left, y);
      pen.lineTo(this.width - this.frame.right, y);
      pen.stroke();
      pen.fillStyle = colours.faint;
      pen.fillText(small ? text : `${text}×`, this.frame.left - 7, y);
    }
  }

  /** The overhead: a line where few regimes share a column, else the band between the least and
   * the greatest and in it the mean over the budgets. @param {CanvasRenderingContext2D} pen */
  _curve(pen) {
    const { width, low, high, total, weight, counts } = this.columns;
    const unit = this.inner / width;
    const thick = this.frame === SMALL ? 1.25 : 1.75;
    const band = new Path2D();
    const line = new Path2D();
    for (let column = 0; column < width; column += 1) {
      if (!counts[column]) continue;
      const x = this.frame.left + column * unit;
      const [top, bottom] = [this.yOf(high[column]), this.yOf(low[column])];
      if (counts[column] <= 2) {
        line.rect(x, top - thick / 2, unit, bottom - top + thick);
        continue;
      }
      band.rect(x, top - thick / 2, unit, bottom - top + thick);
      if (weight[column] > 0) line.rect(x, this.yOf(total[column] / weight[column]) - thick / 2, unit, thick);
    }
    pen.save();
    pen.beginPath();
    pen.rect(this.frame.left, this.plotTop, this.inner, this.plotBottom - this.plotTop);
    pen.clip();
    pen.fillStyle = colours.ok;
    pen.globalAlpha = 0.38;
    pen.fill(band);
    pen.globalAlpha = 1;
    pen.fill(line);
    pen.restore();
  }

  /** Every kind that is in a column, in a thin strip under the plot; the rarest is on top.
   * @param {CanvasRenderingContext2D} pen */
  _strip(pen) {
    const top = this.plotBottom + 1;
    const height = this.frame.strip - 1;
    pen.fillStyle = colours.grid;
    pen.fillRect(this.frame.left, top, this.inner, height);
    for (const kind of /** @type {Kind[]} */ (["ok", "oom", "gap", "timeout", "thrashed", "hole"])) {
      pen.fillStyle = colours[kind];
      this.columns.stretches(BIT[kind], (first, end) => {
        const [x, width] = this._stretch(first, end, kind === "ok" || kind === "oom" ? 0 : 2);
        pen.fillRect(x, top, width, height);
      });
    }
    this._seams(pen, top, height);
  }

  /** Where one regime ends and the next begins, once they are wide enough to be told apart.
   * @param {CanvasRenderingContext2D} pen @param {number} top @param {number} height */
  _seams(pen, top, height) {
    const { map, lo, hi } = this;
    const first = map.after(lo);
    const most = this.inner / 6;
    if (first + most < map.count && map.lo[first + Math.ceil(most)] < hi) return;
    pen.fillStyle = colours.card;
    let from = this.xOf(Math.max(map.lo[first], lo));
    for (let row = first; row + 1 < map.count && map.hi[row] < hi; row += 1) {
      const seam = this.xOf(map.hi[row]);
      const to = this.xOf(Math.min(map.hi[row + 1], hi));
      if (seam - from > 6 && to - seam > 6) pen.fillRect(Math.round(seam) - 0.5, top, 1, height);
      from = seam;
    }
  }

  /** @param {CanvasRenderingContext2D} pen */
  _budgets(pen) {
    const { peak } = this.map;
    const base = this.height - this.frame.bottom;
    const small = this.frame === SMALL;
    const below = this._fitting(pen, 40, (count) => peak
      ? plainTicks(this.lo / peak, this.hi / peak, count).map(({ at, text }) => ({ at: at * peak, text }))
      : wholeTicks(this.lo, this.hi, count));
    pen.fillStyle = pen.strokeStyle = colours.faint;
    this._ticks(pen, below, base, 4, base + 12);
    if (small) return;
    pen.textAlign = "center";
    const middle = this.frame.left + this.inner / 2;
    pen.fillText(peak ? "budget, as a share of the peak" : "budget", middle, base + 29);
    if (peak) this._ticks(pen, this._fitting(pen, 60, (count) => byteTicks(this.lo, this.hi, count)), 18, 4, 9);
  }

  /** As many marks as there is room for their texts. @param {CanvasRenderingContext2D} pen
   * @param {number} apart pixels between marks, at least
   * @param {(count: number) => Tick[]} make @returns {Tick[]} */
  _fitting(pen, apart, make) {
    for (; ; apart *= 1.3) {
      const ticks = make(this.inner / apart);
      if (ticks.length < 3) return ticks;
      const widest = Math.max(...ticks.map(({ text }) => pen.measureText(text).width));
      if (widest + 16 <= this.xOf(ticks[1].at) - this.xOf(ticks[0].at)) return ticks;
    }
  }

  /** @param {CanvasRenderingContext2D} pen @param {Tick[]} ticks @param {number} from
   * @param {number} length @param {number} textAt */
  _ticks(pen, ticks, from, length, textAt) {
    let free = -Infinity;
    for (const { at, text } of ticks) {
      const x = this.xOf(at);
      if (x < this.frame.left - 1 || x > this.width - this.frame.right + 1) continue;
      const half = pen.measureText(text).width / 2;
      const middle = Math.min(Math.max(x, half + 1), this.width - half - 1);
      if (middle - half < free) continue;
      free = middle + half + 10;
      pen.fillRect(Math.round(x) - 0.5, from, 1, length);
      pen.textAlign = "center";
      pen.fillText(text, middle, textAt);
    }
  }

  /** Holes as they stand above the plot: one mark for those that lie too close to be told apart.
   * @returns {{x: number, count: number, lo: number, hi: number}[]} */
  marks() {
    /** @type {{x: number, count: number, lo: number, hi: number, from: number, to: number}[]} */
    const marks = [];
    const left = this.frame.left;
    const right = this.width - this.frame.right;
    for (const { lo, hi } of this.map.holes) {
      if (hi <= this.lo || lo >= this.hi) continue;
      const from = Math.max(this.xOf(lo), left);
      const to = Math.min(this.xOf(hi), right);
      const last = marks[marks.length - 1];
      if (last && from - last.to < 14) {
        last.to = to;
        last.hi = hi;
        last.count += 1;
        last.x = (last.from + last.to) / 2;
      } else marks.push({ x: (from + to) / 2, count: 1, lo, hi, from, to });
    }
    return marks;
  }

  /** @param {CanvasRenderingContext2D} pen */
  _holes(pen) {
    const y = this.plotTop - 3;
    const large = this.frame === LARGE;
    const half = large ? 5 : 3.5;
    pen.fillStyle = colours.hole;
    const marks = this.marks();
    marks.forEach(({ x, count }, index) => {
      pen.beginPath();
      pen.moveTo(x - half, y - half * 1.5);
      pen.lineTo(x + half, y - half * 1.5);
      pen.lineTo(x, y);
      pen.fill();
      if (count < 2 || !large) return;
      const text = `${count} holes`;
      const next = marks[index + 1]?.x ?? this.width;
      if (x + 2 * half + pen.measureText(text).width + 8 > next) return;
      pen.textAlign = "left";
      pen.fillText(text, x + half + 3, y - 4);
    });
  }

  /** Cliffs: a diamond at the foot of each, a line up it. @param {CanvasRenderingContext2D} pen */
  _cliffs(pen) {
    let drawn = -Infinity;
    const half = this.frame === LARGE ? 4 : 3;
    pen.fillStyle = pen.strokeStyle = colours.cliff;
    pen.lineWidth = 1.25;
    for (const { at, below, above, gap } of this.map.cliffs) {
      if (at < this.lo || at - gap > this.hi) continue;
      const x = this.xOf(at - gap / 2);
      if (x - drawn < 2) continue;
      drawn = x;
      const [from, to] = [this.yOf(below), this.yOf(above)];
      pen.beginPath();
      pen.moveTo(x, from);
      pen.lineTo(x, to);
      pen.stroke();
      pen.beginPath();
      pen.moveTo(x, to - half * 1.5);
      pen.lineTo(x + half, to);
      pen.lineTo(x, to + half * 1.5);
      pen.lineTo(x - half, to);
      pen.fill();
    }
  }

  /** Draw what is pointed at, and the cursor. */
  drawOver() {
    const pen = this.over.begin(this.width, this.height);
    if (this.cursor != null) this._stand(pen, this.cursor, true);
    if (this.pointed != null) this._stand(pen, this.pointed, false);
  }

  /** @param {CanvasRenderingContext2D} pen @param {number} budget @param {boolean} chosen */
  _stand(pen, budget, chosen) {
    const x = this.xOf(budget + 0.5);
    if (x < this.frame.left || x > this.width - this.frame.right) return;
    const [top, bottom] = [this.plotTop, this.plotBottom];
    const [lo, hi] = this.map.range(budget);
    const from = Math.max(this.xOf(lo), this.frame.left);
    const to = Math.min(this.xOf(hi), this.width - this.frame.right);
    pen.fillStyle = colours.text;
    pen.globalAlpha = chosen ? 0.1 : 0.06;
    pen.fillRect(from, top, Math.max(to - from, 1), bottom - top);
    pen.globalAlpha = chosen ? 1 : 0.55;
    pen.fillRect(x - 0.5, top - (chosen ? 4 : 0), 1, bottom - top + (chosen ? this.frame.strip + 4 : 0));
    pen.globalAlpha = 1;
    const row = this.map.at(budget);
    if (row < 0 || this.map.status[row] !== OK) return;
    pen.beginPath();
    pen.arc(x, this.yOf(this.map.overhead[row]), 4, 0, 2 * Math.PI);
    pen.fillStyle = colours.ok;
    pen.fill();
    pen.lineWidth = 1.5;
    pen.strokeStyle = colours.text;
    pen.stroke();
  }
}
