// @ts-check
// A window on a map, as columns one pixel wide: as many as there are pixels, however many regimes.

/** Bits of what a column holds besides regimes that run. @type {Record<Kind, number>} */
const BIT = { ok: 1, oom: 2, hole: 4, thrashed: 8, timeout: 16, gap: 32 };

class Columns {
  /** @param {number} width */
  constructor(width) {
    this.width = width;
    this.low = new Float64Array(width).fill(Infinity);
    this.high = new Float64Array(width).fill(-Infinity);
    this.total = new Float64Array(width);
    this.weight = new Float64Array(width);
    this.kinds = new Uint8Array(width);
    this.counts = new Uint32Array(width);
  }

  /** What a map holds from `lo` to `hi`. @param {RegimeMap} map @param {number} lo
   * @param {number} hi */
  fill(map, lo, hi) {
    const scale = this.width / (hi - lo);
    for (let row = map.after(lo); row < map.count && map.lo[row] < hi; row += 1) {
      const from = (map.lo[row] - lo) * scale;
      const to = (map.hi[row] - lo) * scale;
      if (map.status[row] === OK) {
        const next = row + 1;
        const joined = next < map.count && map.status[next] === OK && map.lo[next] === map.hi[row];
        this._runs(from, to, map.overhead[row], joined);
      } else this._mark(from, to, BIT[map.kind(row)]);
    }
    for (const [start, end] of map.gaps) {
      if (end > lo && start < hi) this._mark((start - lo) * scale, (end - lo) * scale, BIT.gap);
    }
  }

  /** A regime that runs. One that is joined to the next shares its last column with it, so that the
   * line rises from one to the other.
   * @param {number} from @param {number} to @param {number} cost @param {boolean} joined */
  _runs(from, to, cost, joined) {
    const first = Math.max(0, Math.floor(from));
    let last = Math.max(first, joined ? Math.floor(to) : Math.ceil(to) - 1);
    if (last >= this.width) last = this.width - 1;
    for (let column = first; column <= last; column += 1) {
      if (cost < this.low[column]) this.low[column] = cost;
      if (cost > this.high[column]) this.high[column] = cost;
      const part = Math.min(to, column + 1) - Math.max(from, column);
      if (part > 0) {
        this.total[column] += part * cost;
        this.weight[column] += part;
      }
      this.kinds[column] |= BIT.ok;
      this.counts[column] += 1;
    }
  }

  /** @param {number} from @param {number} to @param {number} bit */
  _mark(from, to, bit) {
    const first = Math.max(0, Math.floor(from));
    const last = Math.min(this.width - 1, Math.max(first, Math.ceil(to) - 1));
    for (let column = first; column <= last; column += 1) this.kinds[column] |= bit;
  }

  /** An axis for the overheads in these columns. */
  axis() {
    let [least, greatest] = [Infinity, -Infinity];
    for (let column = 0; column < this.width; column += 1) {
      least = Math.min(least, this.low[column]);
      greatest = Math.max(greatest, this.high[column]);
    }
    return new CostAxis(least, greatest);
  }

  /** Unbroken stretches of columns that hold something. @param {number} bit
   * @param {(first: number, end: number) => void} each */
  stretches(bit, each) {
    let first = -1;
    for (let column = 0; column <= this.width; column += 1) {
      const here = column < this.width && (this.kinds[column] & bit) !== 0;
      if (here && first < 0) first = column;
      if (!here && first >= 0) {
        each(first, column);
        first = -1;
      }
    }
  }
}
