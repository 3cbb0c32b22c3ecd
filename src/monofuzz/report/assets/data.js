// @ts-check
// What stands in the page: blobs of text become documents, maps answer questions about budgets.

/** @typedef {{name: string, kind: "int" | "float", planes: number}} Column */
/** @typedef {{head: any, columns: Record<string, Float64Array | Uint8Array>}} Unpacked */

/** Unpack a blob; its format is described where it is made. @param {string} text
 * @returns {Promise<Unpacked>} */
async function unpack(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  /** @type {Record<string, Float64Array | Uint8Array>} */
  const columns = {};
  let at = 4 + length;
  for (const [name, kind, planes] of head.columns) {
    const part = bytes.subarray(at, at + planes * head.rows);
    columns[name] = kind === "float" ? floats(part, head.rows) : integers(part, head.rows, planes);
    at += part.length;
  }
  return { head, columns };
}

/** @param {Uint8Array} planes @param {number} rows */
function floats(planes, rows) {
  const bytes = new Uint8Array(rows * 8);
  for (let plane = 0; plane < 8; plane += 1) {
    for (let row = 0; row < rows; row += 1) bytes[row * 8 + plane] = planes[plane * rows + row];
  }
  return new Float64Array(bytes.buffer);
}

/** @param {Uint8Array} planes @param {number} rows @param {number} count */
function integers(planes, rows, count) {
  if (count === 1) return planes.slice();
  const numbers = new Float64Array(rows);
  for (let plane = count - 1; plane >= 0; plane -= 1) {
    for (let row = 0; row < rows; row += 1) {
      numbers[row] = numbers[row] * 256 + planes[plane * rows + row];
    }
  }
  return numbers;
}

const OK = 0;
const OOM = 1;
const THRASHED = 2;
const TIMEOUT = 3;

/** @typedef {"ok" | "oom" | "hole" | "thrashed" | "timeout" | "gap"} Kind */
/** @typedef {{lo: number, hi: number, exactLo: boolean, exactHi: boolean, unknown: number,
 *   open: boolean, bytes: number}} Hole */
/** @typedef {{at: number, below: number, above: number, gap: number, factor: number}} Cliff */

/** @type {Record<Kind, string>} */
const KIND_NAMES = {
  ok: "runs",
  oom: "too little memory",
  hole: "hole: fails, less suffices",
  thrashed: "thrashes",
  timeout: "timed out",
  gap: "unexplored",
};

/** The regimes of a map as arrays, and what is to be said of it. */
class RegimeMap {
  /** @param {Unpacked} unpacked */
  constructor({ head, columns }) {
    const rows = head.rows;
    this.count = rows;
    this.head = head;
    /** @type {string} */ this.trace = head.trace;
    /** @type {string} */ this.policy = head.policy;
    /** @type {number | null} */ this.peak = head.peak;
    /** @type {[number, number]} */ this.between = head.between;
    this.lo = new Float64Array(rows);
    this.hi = new Float64Array(rows);
    let at = this.between[0];
    for (let row = 0; row < rows; row += 1) {
      this.lo[row] = at + columns.skip[row];
      this.hi[row] = at = this.lo[row] + columns.width[row];
    }
    this.status = columns.status;
    this.certified = columns.certified;
    this.overhead = columns.overhead;
    this.counters = columns;
    /** @type {[number, number][]} */ this.gaps = head.gaps;
    /** @type {Hole[]} */
    this.holes = head.holes.map(
      (/** @type {any[]} */ [lo, hi, exactLo, exactHi, unknown, open]) =>
        ({ lo, hi, exactLo, exactHi, unknown, open, bytes: hi - lo - unknown }),
    );
    /** @type {Cliff[]} */
    this.cliffs = head.cliffs.map(
      (/** @type {number[]} */ [cliff, below, above, gap]) =>
        ({ at: cliff, below, above, gap, factor: below ? above / below : Infinity }),
    );
    this.least = Infinity;
    this.greatest = -Infinity;
    this.firstOk = -1;
    for (let row = 0; row < rows; row += 1) {
      if (this.status[row] !== OK) continue;
      if (this.firstOk < 0) this.firstOk = row;
      this.least = Math.min(this.least, this.overhead[row]);
      this.greatest = Math.max(this.greatest, this.overhead[row]);
    }
  }

  get name() {
    return this.policy ? `${this.trace} under ${this.policy}` : this.trace;
  }

  /** The first regime that ends above a budget. @param {number} budget */
  after(budget) {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.hi[middle] > budget) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** The regime that holds a budget, -1 in a gap. @param {number} budget */
  at(budget) {
    const row = this.after(budget);
    return row < this.count && this.lo[row] <= budget ? row : -1;
  }

  /** What a regime is to be shown as. @param {number} row @returns {Kind} */
  kind(row) {
    if (row < 0) return "gap";
    const status = this.status[row];
    if (status === OK) return "ok";
    if (status === THRASHED) return "thrashed";
    if (status === TIMEOUT) return "timeout";
    return this.firstOk >= 0 && row > this.firstOk ? "hole" : "oom";
  }

  /** The edges of what is known or unknown around a budget. @param {number} budget
   * @returns {[number, number]} */
  range(budget) {
    const row = this.after(budget);
    if (row < this.count && this.lo[row] <= budget) return [this.lo[row], this.hi[row]];
    const lo = row > 0 ? this.hi[row - 1] : this.between[0];
    return [lo, row < this.count ? this.lo[row] : this.between[1]];
  }

  /** What happens at a budget, in words. @param {number} budget */
  describe(budget) {
    const row = this.at(budget);
    const kind = this.kind(row);
    const [lo, hi] = this.range(budget);
    const where = this.peak
      ? `${exact(budget)} bytes, ${share(budget, this.peak)} of the peak`
      : exact(budget);
    const cost = kind === "ok" ? `, overhead ${times(this.overhead[row])}` : "";
    return `${where}: ${KIND_NAMES[kind]}${cost}; the same from ${exact(lo)} to ${exact(hi - 1)}`;
  }

  /** How many regimes a range touches, and the least and greatest overhead in it.
   * @param {number} lo @param {number} hi */
  summary(lo, hi) {
    let count = 0;
    let least = Infinity;
    let greatest = -Infinity;
    let failing = 0;
    for (let row = this.after(lo); row < this.count && this.lo[row] < hi; row += 1) {
      count += 1;
      if (this.status[row] === OK) {
        least = Math.min(least, this.overhead[row]);
        greatest = Math.max(greatest, this.overhead[row]);
      } else failing += 1;
    }
    return { count, least, greatest, failing };
  }
}
