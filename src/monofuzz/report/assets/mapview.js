// @ts-check
// One map: what it says, its chart, and what breaks in it as tables.

/** @type {(() => void)[]} what to draw again when the colours change */
const redraws = [];
const tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });

/** Show the tooltip beside the pointer. @param {PointerEvent} event @param {Node[]} lines */
function showTip(event, lines) {
  tip.replaceChildren(...lines);
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const right = event.clientX + 16 + width < innerWidth;
  const x = right ? event.clientX + 16 : Math.max(event.clientX - 16 - width, 4);
  const y = Math.min(Math.max(event.clientY - height / 2, 4), innerHeight - height - 4);
  tip.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
}

/** @param {Kind} kind */
function dot(kind) {
  return h("span", { class: `dot ${kind}`, "aria-hidden": "true" });
}

/** What happens at a budget, in lines. @param {RegimeMap} map @param {number} budget */
function linesAt(map, budget) {
  const row = map.at(budget);
  const kind = map.kind(row);
  const [lo, hi] = map.range(budget);
  const cost = kind === "ok" ? `, ${times(map.overhead[row])}` : "";
  return [
    h("b", {}, map.peak ? `${exact(budget)} bytes` : exact(budget)),
    map.peak ? h("div", { class: "faint" }, `${size(budget)} · ${share(budget, map.peak)} of the peak`) : h("div"),
    h("div", {}, dot(kind), KIND_NAMES[kind] + cost),
    h("div", { class: "faint" }, `[${exact(lo)}, ${exact(hi)}) · ${plural(hi - lo, map.peak ? "byte" : "budget")}`),
  ];
}

/** The whole range of a map in little, with the window that the chart shows. */
class Overview {
  /** @param {RegimeMap} map @param {Viewport} view @param {CostAxis} axis */
  constructor(map, view, axis) {
    this.map = map;
    this.view = view;
    this.axis = axis;
    this.base = new Sheet("base");
    this.over = new Sheet("over");
    this.element = h("div", { class: "overview", "aria-hidden": "true", title: "Drag to choose what the chart shows" }, this.base.canvas, this.over.canvas);
    this._attach();
  }

  get inner() {
    return this.element.clientWidth - LARGE.left - LARGE.right;
  }

  draw() {
    const [width, height] = [this.element.clientWidth, this.element.clientHeight];
    if (this.inner <= 0 || !height) return;
    const pen = this.base.begin(width, height);
    const [lo, hi] = this.map.between;
    const pixels = Math.max(1, Math.round(this.inner * this.base.scale));
    const columns = new Columns(pixels);
    columns.fill(this.map, lo, hi);
    const unit = this.inner / pixels;
    for (const kind of /** @type {Kind[]} */ (["oom", "gap", "timeout", "thrashed", "hole"])) {
      pen.fillStyle = colours[kind];
      pen.globalAlpha = kind === "oom" ? 0.2 : 0.7;
      columns.stretches(BIT[kind], (first, end) => {
        const wide = Math.max((end - first) * unit, kind === "oom" ? 0 : 2);
        pen.fillRect(LARGE.left + first * unit, 0, wide, height);
      });
    }
    pen.globalAlpha = 0.8;
    pen.fillStyle = colours.ok;
    pen.beginPath();
    for (let column = 0; column < pixels; column += 1) {
      if (!columns.counts[column]) continue;
      const y = height - 2 - this.axis.place(columns.high[column]) * (height - 4);
      const bottom = height - 2 - this.axis.place(columns.low[column]) * (height - 4);
      pen.rect(LARGE.left + column * unit, y, unit, Math.max(bottom - y, 1.25));
    }
    pen.fill();
    pen.globalAlpha = 1;
    this.drawWindow();
  }

  drawWindow() {
    const [width, height] = [this.element.clientWidth, this.element.clientHeight];
    if (this.inner <= 0 || !height) return;
    const pen = this.over.begin(width, height);
    const { first, last, lo, hi } = this.view;
    const scale = this.inner / (last - first);
    const middle = LARGE.left + ((lo + hi) / 2 - first) * scale;
    const wide = Math.max((hi - lo) * scale, 5);
    const from = Math.min(Math.max(middle - wide / 2, LARGE.left), width - LARGE.right - wide);
    pen.fillStyle = colours.faint;
    pen.globalAlpha = 0.16;
    pen.fillRect(LARGE.left, 0, from - LARGE.left, height);
    pen.fillRect(from + wide, 0, width - LARGE.right - from - wide, height);
    pen.globalAlpha = 1;
    pen.strokeStyle = colours.text;
    pen.lineWidth = 1.25;
    pen.strokeRect(from + 0.5, 0.6, wide - 1, height - 1.2);
  }

  _attach() {
    const { element, view } = this;
    /** @type {((budget: number) => void) | null} */
    let drag = null;
    const budgetAt = (/** @type {PointerEvent} */ event) => {
      const x = event.clientX - element.getBoundingClientRect().left - LARGE.left;
      return view.first + (x / this.inner) * (view.last - view.first);
    };
    element.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
      if (event.button) return;
      element.setPointerCapture(event.pointerId);
      const begin = budgetAt(event);
      const { lo, hi, span } = view;
      const near = (6 / this.inner) * (view.last - view.first);
      if (!view.whole && begin >= lo - near && begin <= hi + near) {
        drag = (now) => view.set(lo + now - begin, hi + now - begin);
      } else {
        let brushed = false;
        drag = (now) => {
          brushed ||= Math.abs(now - begin) > near / 2;
          if (brushed) view.set(Math.min(begin, now), Math.max(begin, now));
        };
        if (!view.whole) view.set(begin - span / 2, begin + span / 2);
      }
    });
    element.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => drag?.(budgetAt(event)));
    for (const end of ["pointerup", "pointercancel"]) element.addEventListener(end, () => (drag = null));
  }
}

/** @type {Record<string, string>} */
const CLAIMS = {
  feasibility: "More memory never makes it fail",
  cost: "More memory never makes it slower",
};
const ROOM = 0.1; // how far an arrow key moves, as a share of the window

class MapView {
  /** @param {RegimeMap} map @param {number} number */
  constructor(map, number) {
    this.map = map;
    this.id = `map-${number}`;
    this.view = new Viewport(map.between[0], map.between[1], 4);
    const axis = new CostAxis(map.least, map.greatest);
    this.plot = new Plot(map, axis, LARGE);
    this.overview = new Overview(map, this.view, axis);
    this.readout = h("dl", { class: "readout" });
    this.scope = h("span", { class: "scope" });
    this.fit = h("button", { type: "button", "aria-pressed": "false", title: "The axis of overheads follows what is shown (F)", onclick: () => this._toggleFit() }, "Fit height");
    this.cursor = this._firstCursor();
    this._speaking = 0;
    this._visible = true;
    this.element = this._build();
    this._attach();
    this.choose(this.cursor);
  }

  /** Where the eye should fall first: the first hole, or where it begins to run. */
  _firstCursor() {
    const { map } = this;
    if (map.holes.length) return map.holes[0].lo;
    return map.firstOk >= 0 ? map.lo[map.firstOk] : map.between[0];
  }

  _build() {
    const { map, plot, id } = this;
    plot.element.tabIndex = 0;
    plot.element.setAttribute("role", "application");
    plot.element.setAttribute("aria-roledescription", "zoomable chart");
    plot.element.setAttribute("aria-label", `Overhead against budget: ${map.name}. Plus and minus zoom, arrows move, N and P go to the next and previous hole, question mark lists all keys.`);
    return h("article", { class: "map card", id, "aria-labelledby": `${id}-title` },
      h("h2", { id: `${id}-title` }, ...nameOf(map)),
      factsOf(map),
      h("div", { class: "verdicts" }, ...Object.keys(map.head.verdicts).map((claim) => this._verdict(claim))),
      this._toolbar(),
      plot.element,
      this.overview.element,
      legendOf(map),
      this.readout,
      this._tables());
  }

  _toolbar() {
    const { view } = this;
    const button = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ act, off = false) =>
      h("button", { type: "button", title: label, "aria-label": label, onclick: act, disabled: off }, text);
    const none = !this.map.holes.length;
    const input = h("input", { type: "text", size: "16", inputmode: "text", "aria-label": "Go to a budget", placeholder: this.map.peak ? "0.1 or bytes" : "budget", spellcheck: "false", autocomplete: "off" });
    const form = h("form", { class: "goto", onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      const budget = this._budgetFrom(input.value);
      input.setAttribute("aria-invalid", String(budget === null));
      if (budget === null) announce("This is no budget within the map.");
      else this.show(budget, budget + 1, 64);
    } }, h("label", {}, h("span", {}, "Go to "), input));
    return h("div", { class: "toolbar", role: "toolbar", "aria-label": "Chart" },
      h("span", { class: "group" },
        button("−", "Zoom out (-)", () => this._zoom(1 / 2)),
        button("+", "Zoom in (+)", () => this._zoom(2)),
        button("All", "Show all (0)", () => view.reset())),
      h("span", { class: "group" },
        button("‹", "Previous hole (P)", () => this._step(this._holeRanges, -1), none),
        h("span", { class: "what" }, "hole"),
        button("›", "Next hole (N)", () => this._step(this._holeRanges, 1), none)),
      h("span", { class: "group" },
        button("‹", "Previous cliff (Shift+C)", () => this._step(this._cliffRanges, -1), !this.map.cliffs.length),
        h("span", { class: "what" }, "cliff"),
        button("›", "Next cliff (C)", () => this._step(this._cliffRanges, 1), !this.map.cliffs.length)),
      this.fit,
      form,
      this.scope);
  }

  /** @param {string} text */
  _budgetFrom(text) {
    const { peak, between: [lo, hi] } = this.map;
    const plain = text.trim().replaceAll(",", "").replaceAll("_", "");
    const portion = /[.%e]/i.test(plain);
    const value = Number(plain.replace(/%$/, "")) / (plain.endsWith("%") ? 100 : 1);
    if (!plain || !Number.isFinite(value) || (portion && !peak)) return null;
    const budget = portion ? Math.floor(value * (peak ?? 1)) : value;
    return Number.isInteger(budget) && lo <= budget && budget < hi ? budget : null;
  }

  get _holeRanges() {
    return this.map.holes.map(({ lo, hi }) => ({ lo, hi, at: lo }));
  }

  get _cliffRanges() {
    return this.map.cliffs.map(({ at, gap }) => ({ lo: at - gap - 1, hi: at + 1, at }));
  }

  /** @param {string} claim */
  _verdict(claim) {
    const { map } = this;
    const said = map.head.verdicts[claim];
    const mark = { refuted: "✕", monotone: "✓", undecided: "?" }[/** @type {string} */ (said.verdict)];
    const asks = CLAIMS[claim];
    const show = said.witness && h("button", { type: "button", onclick: () => {
      const [low, high] = said.witness.budgets;
      this.show(low, high + 1, 3, high);
    } }, "Show the two budgets");
    return h("section", { class: `verdict ${said.verdict}`, "data-claim": claim },
      h("span", { class: "mark", "aria-hidden": "true" }, mark),
      h("div", {},
        h("h3", {}, `${asks}: `, h("em", {}, said.verdict)),
        h("p", {}, said.witness ? witnessOf(map, said.witness) : sentence(said.reason)),
        show));
  }

  _tables() {
    const { map } = this;
    const { peak } = map;
    const ratio = (/** @type {number} */ budget) => (peak ? share(budget, peak) : "–");
    /** @type {Field<Hole>[]} */
    const holes = [
      { title: "from byte", value: (hole) => hole.lo },
      { title: "below byte", value: (hole) => hole.hi },
      { title: "from ratio", value: (hole) => hole.lo, text: (hole) => ratio(hole.lo) },
      { title: "to ratio", value: (hole) => hole.hi, text: (hole) => ratio(hole.hi) },
      { title: "width", value: (hole) => hole.bytes, text: (hole) => size(hole.bytes) },
      { title: "edges", left: true, value: (hole) => Number(hole.exactLo) + Number(hole.exactHi) - Number(hole.open),
        hint: "Whether the budgets just outside are known to run",
        text: (hole) => (hole.open ? "none feasible above is known" : hole.exactLo && hole.exactHi ? "exact" : "may reach further") + (hole.unknown ? `, ${plural(hole.unknown, "budget")} inside unknown` : "") },
    ];
    /** @type {Field<Cliff>[]} */
    const cliffs = [
      { title: "at byte", value: (cliff) => cliff.at },
      { title: "ratio", value: (cliff) => cliff.at, text: (cliff) => ratio(cliff.at) },
      { title: "overhead below", value: (cliff) => cliff.below, text: (cliff) => times(cliff.below) },
      { title: "above", value: (cliff) => cliff.above, text: (cliff) => times(cliff.above) },
      { title: "factor", value: (cliff) => cliff.factor, text: (cliff) => times(cliff.factor) },
      { title: "place", left: true, value: (cliff) => cliff.gap, text: (cliff) => (cliff.gap ? `${plural(cliff.gap, "budget")} between unknown` : "exact") },
    ];
    return h("div", { class: "tables" },
      map.holes.length
        ? sortable(`${plural(map.holes.length, "hole")}: it fails here, though less memory suffices`, holes, map.holes, (hole) => this.show(hole.lo, hole.hi))
        : h("p", { class: "none" }, map.firstOk < 0 ? "No feasible budget is known." : "No holes: no failing budget is known above a feasible one."),
      map.cliffs.length
        ? sortable(`${plural(map.cliffs.length, "cliff")}: one byte more raises the overhead by more than ${map.head.factor} times`, cliffs, map.cliffs, (cliff) => this.show(cliff.at - cliff.gap - 1, cliff.at + 1, 32, cliff.at))
        : h("p", { class: "none" }, `No cliffs: no step raises the overhead by more than ${map.head.factor} times.`));
  }

  _attach() {
    const { plot, view, map } = this;
    attachPointers(plot, view, 1, {
      point: (budget, event) => {
        plot.pointed = budget;
        soon(this._drawOver);
        if (budget === null || !event) tip.hidden = true;
        else showTip(event, [...linesAt(map, budget), ...this._crowd(event)]);
      },
      pick: (x, y) => {
        plot.element.focus({ preventScroll: true });
        const mark = y < plot.plotTop + 2 ? plot.marks().find((one) => Math.abs(one.x - x) < 10) : undefined;
        if (mark) this.show(mark.lo, mark.hi);
        else this.choose(plot.wholeAt(x));
      },
    });
    const regime = (/** @type {number} */ by) => () => {
      const [lo, hi] = map.range(this.cursor);
      this._moveTo(by < 0 ? lo - 1 : hi);
    };
    attachKeys(plot.element, {
      "+": () => this._zoom(2),
      "=": () => this._zoom(2),
      "-": () => this._zoom(1 / 2),
      _: () => this._zoom(1 / 2),
      0: () => view.reset(),
      ArrowLeft: () => this._pan(-ROOM),
      ArrowRight: () => this._pan(ROOM),
      PageUp: () => this._pan(-0.9),
      PageDown: () => this._pan(0.9),
      Home: () => this._moveTo(map.between[0]),
      End: () => this._moveTo(map.between[1] - 1),
      ",": () => this._moveTo(this.cursor - 1),
      ".": () => this._moveTo(this.cursor + 1),
      "Shift+ArrowLeft": regime(-1),
      "Shift+ArrowRight": regime(1),
      n: () => this._step(this._holeRanges, 1),
      p: () => this._step(this._holeRanges, -1),
      c: () => this._step(this._cliffRanges, 1),
      C: () => this._step(this._cliffRanges, -1),
      f: () => this._toggleFit(),
    });
    view.listeners.add(() => {
      tip.hidden = true;
      soon(this._draw);
    });
    new ResizeObserver(() => soon(this._drawAll)).observe(plot.element);
    new IntersectionObserver(([entry]) => {
      this._visible = entry.isIntersecting;
      if (this._visible) soon(this._drawAll);
    }, { rootMargin: "200px" }).observe(this.element);
    redraws.push(() => soon(this._drawAll));
  }

  _drawOver = () => this.plot.drawOver();

  _draw = () => {
    const { view, plot, map } = this;
    if (!this._visible) return;
    plot.draw(view.lo, view.hi);
    this.overview.drawWindow();
    const shown = `${exact(Math.floor(view.lo))} – ${exact(Math.ceil(view.hi) - 1)}`;
    this.scope.textContent = `${shown} · ${size(Math.ceil(view.hi) - Math.floor(view.lo))}`;
    if (!map.peak) this.scope.textContent = shown;
  };

  _drawAll = () => {
    this._draw();
    this.overview.draw();
  };

  _toggleFit() {
    const { plot, map } = this;
    plot.fitted = !plot.fitted;
    plot.axis = new CostAxis(map.least, map.greatest);
    this.fit.setAttribute("aria-pressed", String(plot.fitted));
    soon(this._draw);
  }

  /** What else the pointer covers, when a pixel holds several regimes. @param {PointerEvent} event */
  _crowd(event) {
    const { plot, map } = this;
    const x = event.clientX - plot.element.getBoundingClientRect().left;
    const { count, least, greatest, failing } = map.summary(plot.budgetAt(x - 0.5), plot.budgetAt(x + 0.5));
    if (count < 3) return [];
    const [low, high] = [times(least), times(greatest)];
    const costs = least > greatest ? "" : low === high ? `, ${low}` : `, ${low} to ${high}`;
    const fail = failing ? `, ${exact(failing)} failing` : "";
    return [h("div", { class: "crowd" }, `${plural(count, "regime")} in this pixel${costs}${fail}`)];
  }

  /** @param {number} factor */
  _zoom(factor) {
    const { view } = this;
    const seen = this.cursor + 1 > view.lo && this.cursor < view.hi;
    view.zoom(factor, seen ? this.cursor + 0.5 : view.middle);
    if (!seen) this.choose(Math.floor(view.middle));
    this._speak();
  }

  /** @param {number} part */
  _pan(part) {
    const { view } = this;
    const step = Math.sign(part) * Math.max(1, Math.round(Math.abs(part) * view.span));
    view.set(view.lo + step, view.hi + step);
    this._moveTo(this.cursor + step);
  }

  /** Put the cursor on a budget and keep it in sight. @param {number} budget */
  _moveTo(budget) {
    const { view, map } = this;
    this.choose(Math.min(Math.max(budget, map.between[0]), map.between[1] - 1));
    if (this.cursor < view.lo || this.cursor + 1 > view.hi) {
      const half = view.span / 2;
      view.set(this.cursor + 0.5 - half, this.cursor + 0.5 + half);
    }
    this._speak();
  }

  /** Go to the next of some ranges, seen from the cursor; after the last comes the first.
   * @param {{lo: number, hi: number, at: number}[]} ranges @param {number} by */
  _step(ranges, by) {
    if (!ranges.length) {
      announce("There is none in this map.");
      return;
    }
    const next = by > 0 ? ranges.find(({ at }) => at > this.cursor) ?? ranges[0]
      : ranges.findLast(({ at }) => at < this.cursor) ?? ranges[ranges.length - 1];
    this.show(next.lo, next.hi, 2.5, next.at);
  }

  /** Zoom to a range and put the cursor there. @param {number} lo @param {number} hi
   * @param {number} [room] @param {number} [cursor] */
  show(lo, hi, room = 2.5, cursor = lo) {
    const narrow = Math.max(room, 16 / (hi - lo));
    this.view.frame(lo, hi, narrow);
    this.choose(cursor);
    const box = this.plot.element.getBoundingClientRect();
    if (box.top < 0 || box.bottom > innerHeight) {
      this.plot.element.scrollIntoView({ block: "center", behavior: still.matches ? "auto" : "smooth" });
    }
    this._speak();
  }

  /** Say what is at the cursor, once the keys rest. */
  _speak() {
    clearTimeout(this._speaking);
    this._speaking = setTimeout(() => announce(this.map.describe(this.cursor)), 150);
  }

  /** Put the cursor on a budget. @param {number} budget */
  choose(budget) {
    tip.hidden = true;
    this.cursor = this.plot.cursor = budget;
    soon(this._drawOver);
    this._fillReadout();
  }

  _fillReadout() {
    const { map, cursor } = this;
    const row = map.at(cursor);
    const kind = map.kind(row);
    const [lo, hi] = map.range(cursor);
    const count = (/** @type {string} */ name) => (row < 0 ? 0 : map.counters[name][row]);
    /** @type {[string, string | Node, string?][]} */
    const fields = [["budget", exact(cursor), "budget"]];
    if (map.peak) fields.push(["of the peak", share(cursor, map.peak, shareDigits(map.peak)), "ratio"], ["size", size(cursor)]);
    fields.push(["status", h("span", {}, dot(kind), { ok: "runs", oom: "fails: out of memory", hole: "fails: out of memory", thrashed: "thrashes", timeout: "timed out", gap: "is not explored" }[kind]), "status"]);
    if (kind === "ok") fields.push(["overhead", times(map.overhead[row]), "overhead"]);
    if (kind === "thrashed" && map.head.limit) fields.push(["overhead", `> ${map.head.limit}×`]);
    fields.push([kind === "gap" ? "gap" : "regime", `[${exact(lo)}, ${exact(hi)})`, "interval"], ["width", map.peak ? size(hi - lo) : exact(hi - lo)]);
    if (row >= 0 && !map.certified[row]) fields.push(["certified", "no, a sample"]);
    if (kind !== "gap" && count("peak_memory")) {
      fields.push(["evictions", exact(count("evictions"))], ["recomputed", exact(count("remats"))], ["most memory", size(count("peak_memory"))], ["deepest", exact(count("max_depth"))]);
    }
    if (count("fail_request")) {
      fields.push(["asked for", size(count("fail_request"))], ["while pinned", size(count("fail_pinned"))], ["at depth", exact(count("fail_depth"))]);
    }
    const cells = fields.map(([term, value, key]) => h("div", {}, h("dt", {}, term), h("dd", { "data-field": key ?? null }, value)));
    if (map.policy) cells.push(this._command());
    this.readout.replaceChildren(...cells);
  }

  /** The line that replays the budget at the cursor. */
  _command() {
    const { map } = this;
    const line = ["monofuzz", "replay", map.trace, "--policy", map.policy, "--budget", String(this.cursor)];
    if (map.head.limit !== 60) line.push("--limit", map.head.limit === null ? "none" : String(map.head.limit));
    if (map.head.align !== null) line.push("--align", String(map.head.align));
    const text = line.map(quoted).join(" ");
    const copy = h("button", { type: "button", class: "copy", onclick: async () => {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
      setTimeout(() => (copy.textContent = "Copy"), 1500);
    } }, "Copy");
    return h("div", { class: "command" }, h("dt", {}, "replay it"), h("dd", {}, h("code", {}, text), copy));
  }
}

/** @param {RegimeMap} map */
function nameOf(map) {
  const name = [h("bdi", {}, map.trace)];
  if (map.policy) name.push(h("span", { class: "under" }, " under "), h("bdi", {}, map.policy));
  return name;
}

/** @param {string} text */
function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}

/** A witness in words. @param {RegimeMap} map @param {any} witness */
function witnessOf(map, { claim, below, above }) {
  const more = map.peak ? size(above.budget - below.budget) : exact(above.budget - below.budget);
  const at = map.peak ? `${exact(below.budget)} bytes (${share(below.budget, map.peak)})` : exact(below.budget);
  if (claim === "feasibility") {
    return `It runs with ${at} and ${above.status === "oom" ? "is out of memory" : "thrashes"} with ${more} more.`;
  }
  return `It costs ${times(below.overhead)} with ${at} and ${times(above.overhead)} with ${more} more.`;
}

/** @param {RegimeMap} map */
function factsOf(map) {
  const { head, peak, between: [lo, hi] } = map;
  const known = head.certified
    ? h("span", { class: "badge sure", title: "No gaps, and every regime certified: this map is a proof" }, "✓ certified: all ", exact(hi - lo), " budgets")
    : h("span", { class: "badge", title: "What is unexplored is hatched" }, `${percent(head.covered)} known`,
      map.gaps.length ? `, ${plural(map.gaps.length, "gap")}` : "", head.timeouts ? `, ${plural(head.timeouts, "timeout")}` : "", head.sampled ? ", sampled" : "");
  /** @type {[string, string][]} */
  const facts = [];
  const both = (/** @type {number} */ budget) => (peak ? `${size(budget)} (${Number((budget / peak).toFixed(6))})` : exact(budget));
  if (peak) facts.push(["peak", size(peak)]);
  facts.push(["budgets", `${both(lo)} to ${both(hi)}`]);
  if (map.firstOk >= 0) facts.push(["runs from", both(map.lo[map.firstOk])], ["overhead", `${times(map.least)} to ${times(map.greatest)}`]);
  facts.push(["regimes", exact(map.count)], ["runs made", exact(head.runs)]);
  if (head.limit !== null) facts.push(["compute limit", `${head.limit}×`]);
  if (head.align !== null) facts.push(["sizes rounded to", size(head.align)]);
  return h("div", { class: "facts" }, known, ...facts.map(([term, value]) => h("span", {}, h("span", { class: "term" }, term, " "), value)));
}

/** Only what the map holds. @param {RegimeMap} map */
function legendOf(map) {
  /** @type {Set<Kind>} */
  const kinds = new Set();
  for (let row = 0; row < map.count; row += 1) kinds.add(map.kind(row));
  if (map.gaps.length) kinds.add("gap");
  const order = /** @type {Kind[]} */ (["ok", "oom", "hole", "thrashed", "timeout", "gap"]);
  const items = order.filter((kind) => kinds.has(kind)).map((kind) =>
    h("li", {}, h("span", { class: `swatch ${kind}` }), kind === "ok" ? "overhead (band: least to greatest, line: mean)" : KIND_NAMES[kind]));
  if (map.cliffs.length) items.push(h("li", {}, h("span", { class: "diamond" }, "◆"), "cliff"));
  return h("ul", { class: "legend", "aria-label": "Legend" }, ...items);
}
