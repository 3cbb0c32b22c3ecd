// @ts-check
// A counterexample: its two runs side by side, event by event.

/** @typedef {{storage: number, score: number | string | null, runner_up: number | null,
 *   runner_up_score: number | string | null, candidates: number}} Choice */
/** @typedef {{kind: string, command: number, operator: number | null, storages: number[],
 *   memory: number, pinned: number, depth: number, time: number, pool: number[],
 *   choice: Choice | null}} RunEvent */
/** @typedef {{budget: number, status: string, cost: number, overhead: number, evictions: number,
 *   remats: number, interval: [number, number | null], fail: any, events: RunEvent[] | null}} Run */

/** An SVG element; see `h`. @param {string} tag @param {Record<string, any>} attributes
 * @param {...(Node | string | null)} children @returns {any} */
function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value != null) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child) => child !== null).map((child) => child ?? ""));
  return element;
}

/** @param {number | string | null} score */
function scoreText(score) {
  return typeof score === "number" ? String(Number(score.toPrecision(4))) : String(score);
}

/** How two runs go in step: after each step, how many events of each have happened. Within a
 * command of the schedule the run with fewer events waits for the other.
 * @param {RunEvent[]} one @param {RunEvent[]} other @returns {[number, number][]} */
function inStep(one, other) {
  /** @type {[number, number][]} */
  const steps = [[0, 0]];
  let [i, j] = [0, 0];
  while (i < one.length || j < other.length) {
    const command = Math.min(one[i]?.command ?? Infinity, other[j]?.command ?? Infinity);
    while (one[i]?.command === command || other[j]?.command === command) {
      if (one[i]?.command === command) i += 1;
      if (other[j]?.command === command) j += 1;
      steps.push([i, j]);
    }
  }
  return steps;
}

/** Whether two events are the same thing. @param {RunEvent | undefined} one
 * @param {RunEvent | undefined} other */
function alike(one, other) {
  return one !== undefined && other !== undefined && one.kind === other.kind && one.command === other.command &&
    one.operator === other.operator && String(one.storages) === String(other.storages);
}

/** Where operators stand: a column for each depth, as few crossings as a sweep finds.
 * @param {any[]} operators @param {Record<string, any>} storages */
function layout(operators, storages) {
  /** @type {number[]} */
  const depth = [];
  /** @type {number[][]} */
  const layers = [];
  operators.forEach((operator, index) => {
    const before = operator.reads.map((/** @type {number} */ root) => storages[root].maker);
    depth[index] = Math.max(-1, ...before.map((/** @type {number} */ one) => depth[one])) + 1;
    (layers[depth[index]] ??= []).push(index);
  });
  /** @type {number[]} */
  const rank = [];
  for (const layer of layers) {
    const pull = (/** @type {number} */ index) => {
      const before = operators[index].reads.map((/** @type {number} */ root) => rank[storages[root].maker]);
      return before.length ? before.reduce((/** @type {number} */ sum, /** @type {number} */ one) => sum + one, 0) / before.length : index;
    };
    layer.sort((a, b) => pull(a) - pull(b) || a - b);
    layer.forEach((index, place) => (rank[index] = place - (layer.length - 1) / 2));
  }
  const tallest = Math.max(...layers.map((layer) => layer.length));
  return { depth, rank, columns: layers.length, tallest };
}

const NODE = { width: 60, height: 34, across: 90, down: 48 };
const DRAWN = 80; // operators, above which a graph is no help

/** One of the two runs. */
class Side {
  /** @param {any} head @param {Run} run @param {number} most the right end of both memory bars
   * @param {(event: number) => void} go */
  constructor(head, run, most, go) {
    this.graph = head.graph;
    this.run = run;
    this.events = run.events ?? [];
    this.most = most;
    this.go = go;
    /** @type {Set<number>} */ this.resident = new Set();
    this.at = 0;
    /** @type {SVGElement[]} */ this.nodes = [];
    this.bar = svg("svg", { class: "bar", role: "img", width: "100%", height: "58", viewBox: "0 0 600 58", preserveAspectRatio: "none" });
    this.barTexts = h("div", { class: "bar-texts", "aria-hidden": "true" });
    this.words = h("div", { class: "words" });
    this.pool = h("ul", { class: "pool" });
    this.picture = head.graph.operators.length <= DRAWN ? this._picture() : null;
    this.log = h("ol", { class: "log", tabindex: "0", "aria-label": `Events with ${exact(run.budget)} bytes` },
      ...this.events.map((event, index) => h("li", { class: event.kind, onclick: () => go(index + 1) }, this._short(event))));
    const outcome = { ok: `runs, ${times(run.overhead)}`, oom: "is out of memory", thrashed: "thrashes", timeout: "timed out" }[run.status];
    this.element = h("section", { class: "side" },
      h("h3", {}, dot(/** @type {Kind} */ (run.status === "oom" ? "hole" : run.status)), `with ${plural(run.budget, "byte")} it ${outcome}`),
      h("div", { class: "bar-box" }, this.bar, this.barTexts), this.words, this.picture, h("h4", {}, "Pool: what could be evicted"), this.pool,
      h("h4", {}, "Events"), this.log);
  }

  /** @param {number} root */
  name(root) {
    return this.graph.storages[root].name;
  }

  /** @param {number | null} operator */
  operator(operator) {
    return operator === null ? "" : this.graph.operators[operator].name;
  }

  /** An operator with what the trace calls it. @param {number | null} operator */
  called(operator) {
    if (operator === null) return "";
    const { name, label } = this.graph.operators[operator];
    return label && label !== name ? `${name} (${label})` : name;
  }

  /** @param {RunEvent} event */
  _short(event) {
    const names = event.storages.map((root) => this.name(root)).join(", ");
    switch (event.kind) {
      case "compute": return `compute ${this.called(event.operator)}`;
      case "recompute": return `recompute ${this.called(event.operator)}`;
      case "fail": return `fail: no room for ${this.operator(event.operator)}`;
      default: return `${event.kind} ${names}`;
    }
  }

  /** An event in words. @param {RunEvent} event @returns {(string | Node)[]} */
  tell(event) {
    const names = event.storages.map((root) => `${this.name(root)} (${size(this.graph.storages[root].size)})`).join(", ");
    const doing = event.operator === null ? null : this.graph.operators[event.operator];
    const own = event.storages.length === 1 && doing && this.name(event.storages[0]) === doing.name;
    const made = own ? `, ${size(this.graph.storages[event.storages[0]].size)}` : event.storages.length ? `: ${names}` : "";
    switch (event.kind) {
      case "compute":
        return [h("b", {}, `Computes ${this.called(event.operator)}`), `${this._reads(doing)}${made}.`];
      case "recompute":
        return [h("b", {}, `Recomputes ${this.called(event.operator)}`), `${this._reads(doing)}${made}, ${plural(event.depth - 1, "level")} below the schedule.`];
      case "release":
        return [h("b", {}, `Releases ${names}`), ": nothing refers to it any more."];
      case "pin":
        return [h("b", {}, `Keeps ${names}`), " for good."];
      case "fail": {
        const { pinned_bytes: pinned, request, over_by: over } = this.run.fail;
        return [h("b", {}, `Out of memory for ${this.called(event.operator)}`),
          `: it needs ${size(request)}, ${size(pinned)} cannot be evicted, ${size(over)} too much for ${size(this.run.budget)}.`];
      }
      default:
        return [h("b", {}, `Evicts ${names}`), doing ? ` to make room for ${doing.name}: ` : ": ", ...this._reason(/** @type {Choice} */ (event.choice))];
    }
  }

  /** @param {any} operator */
  _reads(operator) {
    return operator.reads.length ? ` from ${operator.reads.map((/** @type {number} */ root) => this.name(root)).join(", ")}` : "";
  }

  /** @param {Choice} choice @returns {(string | Node)[]} */
  _reason(choice) {
    if (choice.candidates === 1) return ["there was no other choice."];
    const among = ` of ${exact(choice.candidates)} candidates`;
    if (choice.runner_up === null) return [`chosen at random${among}.`];
    const next = this.name(choice.runner_up);
    if (choice.score === null) return [`chosen${among}; next would have been ${next}.`];
    return [`the least score${among}, ${scoreText(choice.score)}; next would have been ${next} with ${scoreText(choice.runner_up_score)}.`];
  }

  /** Show the run after its first `count` events. @param {number} count @param {boolean} waits */
  show(count, waits) {
    this.at = count;
    this.resident.clear();
    for (let index = 0; index < count; index += 1) this._apply(this.events[index]);
    const event = this.events[count - 1];
    this.words.replaceChildren(...(event ? this.tell(event) : [h("b", {}, "Before anything happens")]),
      waits ? h("span", { class: "waits" }, count === this.events.length ? " This run has ended." : " Waits for the other.") : "");
    this.words.classList.toggle("waiting", waits);
    this._bar(event);
    this._pool(event);
    if (this.picture) this._paint(event);
    [...this.log.children].forEach((item, index) => item.classList.toggle("now", index === count - 1));
    const now = this.log.children[count - 1];
    this.log.scrollTop = now ? now.offsetTop - this.log.clientHeight / 2 : 0;
  }

  /** @param {RunEvent} event */
  _apply({ kind, storages }) {
    for (const root of storages) {
      if (kind === "compute" || kind === "recompute") this.resident.add(root);
      else if (kind === "evict" || kind === "release") this.resident.delete(root);
    }
  }

  /** Resident storages as a bar, what cannot be evicted first; the budget is a line across.
   * @param {RunEvent | undefined} event */
  _bar(event) {
    const width = 600;
    const scale = width / this.most;
    const pool = new Set(event?.pool ?? []);
    const order = [...this.resident].sort((a, b) => Number(pool.has(a)) - Number(pool.has(b)) || a - b);
    /** @type {Node[]} */
    const parts = [svg("rect", { class: "room", x: 0, y: 14, width: this.run.budget * scale, height: 30 })];
    /** @type {Node[]} */
    const texts = [];
    let x = 0;
    const block = (/** @type {string} */ kind, /** @type {number} */ bytes, /** @type {string} */ text) => {
      const wide = bytes * scale;
      if (wide) {
        parts.push(svg("rect", { class: `block ${kind}`, x, y: 14, width: wide, height: 30 }, svg("title", {}, `${text}, ${size(bytes)}`)));
        if (wide > 20) texts.push(this._text(x + wide / 2, text, wide));
      }
      x += wide;
    };
    const last = event?.kind ?? "";
    for (const root of order) {
      const fresh = (last === "compute" || last === "recompute") && event?.storages.includes(root);
      block(`${pool.has(root) ? "free" : "held"}${fresh ? " fresh" : ""}`, this.graph.storages[root].size, this.name(root));
    }
    if (last === "evict") for (const root of event?.storages ?? []) block("gone", this.graph.storages[root].size, this.name(root));
    if (last === "fail") block("wanted", this.run.fail.request, `${this.operator(event?.operator ?? null)}?`);
    const at = this.run.budget * scale;
    parts.push(svg("line", { class: "budget", x1: at, x2: at, y1: 6, y2: 52 }));
    this.bar.setAttribute("aria-label", `${size(event?.memory ?? 0)} of ${size(this.run.budget)} used, ${size(event?.pinned ?? 0)} cannot be evicted`);
    this.bar.replaceChildren(...parts);
    const used = h("span", { class: "used" }, `${size(event?.memory ?? 0)} used, ${size(event?.pinned ?? 0)} held`);
    const limit = h("span", { class: "limit" }, `budget ${size(this.run.budget)}`);
    limit.style.left = `${(at / width) * 100}%`;
    limit.classList.toggle("before", at > width / 2);
    this.barTexts.replaceChildren(...texts, used, limit);
  }

  /** @param {number} x of 600 @param {string} text @param {number} wide */
  _text(x, text, wide) {
    const element = h("span", { class: "on-block" }, text);
    element.style.left = `${(x / 600) * 100}%`;
    element.style.maxWidth = `${(wide / 600) * 100}%`;
    return element;
  }

  /** What could be evicted; at an eviction, what there was to choose from.
   * @param {RunEvent | undefined} event */
  _pool(event) {
    const choice = event?.choice;
    const items = (event?.pool ?? []).map((root) => {
      const victim = choice?.storage === root;
      const second = choice?.runner_up === root;
      const score = victim ? choice?.score : second ? choice?.runner_up_score : null;
      return h("li", { class: victim ? "victim" : second ? "second" : null }, h("b", {}, this.name(root)), ` ${size(this.graph.storages[root].size)}`,
        score != null ? h("span", { class: "score" }, `score ${scoreText(score)}`) : null,
        victim ? h("span", { class: "tag" }, "evicted") : second ? h("span", { class: "tag" }, "runner-up") : null);
    });
    this.pool.replaceChildren(...(items.length ? items : [h("li", { class: "none" }, "empty")]));
  }

  _picture() {
    const { operators, storages } = this.graph;
    const { depth, rank, columns, tallest } = layout(operators, storages);
    const width = (columns - 1) * NODE.across + NODE.width + 8;
    const bendOf = (/** @type {number} */ layers) => (layers > 1 ? NODE.down * (0.35 + 0.2 * Math.min(layers, 5)) : 0);
    const jumps = operators.flatMap((/** @type {any} */ operator, /** @type {number} */ index) =>
      operator.reads.map((/** @type {number} */ root) => depth[index] - depth[storages[root].maker]));
    const height = (tallest - 1) * NODE.down + NODE.height + Math.max(20, 1.5 * bendOf(Math.max(1, ...jumps)) - NODE.height / 2);
    const x = (/** @type {number} */ index) => 4 + depth[index] * NODE.across;
    const y = (/** @type {number} */ index) => height / 2 + rank[index] * NODE.down;
    const edges = operators.flatMap((/** @type {any} */ operator, /** @type {number} */ index) =>
      operator.reads.map((/** @type {number} */ root) => {
        const from = storages[root].maker;
        const [x1, y1, x2, y2] = [x(from) + NODE.width, y(from), x(index), y(index)];
        // Past other operators: above them or below them, one after the other in a row.
        const middle = (y1 + y2) / 2 - height / 2;
        const up = middle < 0 || (middle === 0 && depth[from] % 2 === 0);
        const bend = bendOf(depth[index] - depth[from]) * (up ? -1 : 1);
        const half = Math.max((x2 - x1) / 2, 16);
        return svg("path", { class: "edge", d: `M${x1},${y1} C${x1 + half},${y1 + bend} ${x2 - half},${y2 + bend} ${x2},${y2}` });
      }));
    const nodes = operators.map((/** @type {any} */ operator, /** @type {number} */ index) => {
      const bytes = operator.makes.reduce((/** @type {number} */ sum, /** @type {number} */ root) => sum + (storages[root].maker === index ? storages[root].size : 0), 0);
      const node = svg("g", { class: "node", transform: `translate(${x(index)},${y(index) - NODE.height / 2})` },
        svg("title", {}, `${this.called(index)}: cost ${exact(operator.cost)}, makes ${size(bytes)}`),
        svg("rect", { width: NODE.width, height: NODE.height, rx: 6 }),
        svg("text", { x: NODE.width / 2, y: 14, class: "label" }, operator.name.length > 9 ? `${operator.name.slice(0, 8)}…` : operator.name),
        svg("text", { x: NODE.width / 2, y: 27, class: "small" }, size(bytes).replace(" bytes", " B").replace(" byte", " B")));
      this.nodes.push(node);
      return node;
    });
    const drawing = svg("svg", { class: "graph", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Graph: filled operators have their result in memory" }, ...edges, ...nodes);
    return h("div", { class: "scroll" }, drawing);
  }

  /** @param {RunEvent | undefined} event */
  _paint(event) {
    const done = new Set();
    const released = new Set();
    for (const { kind, operator, storages } of this.events.slice(0, this.at)) {
      if (kind === "compute" || kind === "recompute") done.add(operator);
      for (const root of storages) {
        if (kind === "release") released.add(root);
        else released.delete(root);
      }
    }
    const pool = new Set(event?.pool ?? []);
    this.graph.operators.forEach((/** @type {any} */ operator, /** @type {number} */ index) => {
      const there = operator.makes.filter((/** @type {number} */ root) => this.resident.has(root));
      const state = there.length ? (there.every((/** @type {number} */ root) => pool.has(root)) ? "free" : "held")
        : !done.has(index) ? "later" : operator.makes.every((/** @type {number} */ root) => released.has(root)) ? "released" : "evicted";
      const now = event && event.operator === index ? ` ${event.kind}` : "";
      const victim = event?.kind === "evict" && operator.makes.some((/** @type {number} */ root) => event.storages.includes(root)) ? " victim" : "";
      this.nodes[index].setAttribute("class", `node ${state}${now}${victim}`);
    });
  }
}

/** Memory over the steps of both runs. */
class Curves {
  /** @param {Side[]} sides @param {[number, number][]} steps @param {number} most
   * @param {(step: number) => void} go */
  constructor(sides, steps, most, go) {
    this.steps = steps;
    const [width, height] = [1000, 120];
    const x = (/** @type {number} */ step) => (step / Math.max(steps.length - 1, 1)) * width;
    const y = (/** @type {number} */ bytes) => height - (bytes / most) * (height - 4);
    const lines = sides.map((side, which) => {
      let path = `M0,${y(0)}`;
      /** @type {Node[]} */
      const marks = [];
      steps.forEach((counts, step) => {
        const event = side.events[counts[which] - 1];
        path += `H${x(step)}V${y(event?.memory ?? 0)}`;
        const fresh = step > 0 && counts[which] !== steps[step - 1][which];
        if (fresh && event && (event.kind === "evict" || event.kind === "fail")) {
          // A line of no length with round ends: a dot that keeps its shape when the drawing is stretched.
          marks.push(svg("path", { class: `dot-${event.kind}`, d: `M${x(step)},${y(event.memory)}h0` }));
        }
      });
      return svg("g", { class: which ? "above" : "below" }, svg("line", { class: "budget", x1: 0, x2: width, y1: y(side.run.budget), y2: y(side.run.budget) }),
        svg("path", { class: "memory", d: path }), ...marks);
    });
    this.line = svg("line", { class: "now", y1: 0, y2: height });
    this.drawing = svg("svg", { class: "curves", viewBox: `-8 -4 ${width + 16} ${height + 8}`, preserveAspectRatio: "none", "aria-hidden": "true" }, ...lines, this.line);
    this.drawing.addEventListener("click", (/** @type {MouseEvent} */ event) => {
      const box = this.drawing.getBoundingClientRect();
      const place = ((event.clientX - box.left) / box.width) * (width + 16) - 8;
      go(Math.round((place / width) * (steps.length - 1)));
    });
    this._x = x;
  }

  /** @param {number} step */
  show(step) {
    this.line.setAttribute("x1", this._x(step));
    this.line.setAttribute("x2", this._x(step));
  }
}

class ExampleView {
  /** @param {Unpacked} unpacked @param {number} number */
  constructor({ head }, number) {
    this.head = head;
    this.id = `example-${number}`;
    this.step = this.last = this.parting = 0;
    /** @type {[number, number][]} */ this.steps = [];
    /** @type {Side[]} */ this.sides = [];
    /** @type {Curves | null} */ this.curves = null;
    const [below, above] = /** @type {Run[]} */ (head.runs);
    const said = head.claim === "feasibility"
      ? `It runs with ${plural(below.budget, "byte")}, and fails with ${size(above.budget - below.budget)} more.`
      : `It costs ${exact(below.cost)} with ${plural(below.budget, "byte")}, and ${exact(above.cost)} with ${exact(above.budget - below.budget)} more: ${times(above.cost / below.cost)}.`;
    this.element = h("article", { class: "example card", id: this.id, "aria-labelledby": `${this.id}-title` },
      h("h2", { id: `${this.id}-title` }, h("bdi", {}, head.policy), h("span", { class: "under" }, ` breaks ${head.claim} with ${plural(head.operators, "operator")}`)),
      h("p", { class: "lead" }, said),
      this._facts(),
      head.graph ? this._stepper() : h("p", { class: "none" }, `Its runs are not shown event by event: with more than ${exact(head.most)} operators they are too long to step through.`));
  }

  get title() {
    return [h("bdi", {}, this.head.policy), h("span", { class: "under" }, `, ${plural(this.head.operators, "operator")}`)];
  }

  _facts() {
    const { head } = this;
    /** @type {[string, string][]} */
    const facts = [["id", head.id], [head.claim === "cost" ? "factor" : "hole", head.claim === "cost" ? times(head.severity) : `${percent(head.severity)} of the peak`]];
    if (head.trace) facts.push(["trace", head.trace]);
    if (head.limit !== null) facts.push(["compute limit", `${head.limit}×`]);
    if (head.align !== null) facts.push(["sizes rounded to", size(head.align)]);
    for (const [name, value] of Object.entries(head.found)) facts.push([name.replaceAll("_", " "), String(value)]);
    return h("div", { class: "facts" }, ...facts.map(([term, value]) => h("span", {}, h("span", { class: "term" }, `${term} `), h("bdi", {}, value))));
  }

  _stepper() {
    const [below, above] = /** @type {Run[]} */ (this.head.runs);
    const steps = inStep(below.events ?? [], above.events ?? []);
    this.steps = steps;
    this.last = steps.length - 1;
    this.parting = steps.findIndex(([i, j], step) => step > 0 && !alike((below.events ?? [])[i - 1], (above.events ?? [])[j - 1]));
    if (this.parting < 0) this.parting = this.last;
    const wanted = (/** @type {Run} */ run) => (run.fail ? run.fail.pinned_bytes + run.fail.request : 0);
    const highest = (/** @type {Run} */ run) => Math.max(run.budget, wanted(run), ...(run.events ?? []).map((event) =>
      event.memory + (event.kind === "evict" ? event.storages.reduce((sum, root) => sum + this.head.graph.storages[root].size, 0) : 0)));
    const most = Math.max(highest(below), highest(above)) * 1.04;
    this.sides = [below, above].map((run, which) => new Side(this.head, run, most, (count) => {
      const step = steps.findIndex((counts) => counts[which] === count);
      this.go(step);
    }));
    const highestShown = Math.max(...[below, above].flatMap((run) => [run.budget, ...(run.events ?? []).map((event) => event.memory)]));
    this.curves = new Curves(this.sides, steps, highestShown * 1.08, (step) => this.go(step));
    this.slider = h("input", { type: "range", min: "0", max: String(this.last), step: "1", "aria-label": "Step", oninput: () => this.go(Number(this.slider.value)) });
    this.count = h("span", { class: "scope" });
    const button = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ act) =>
      h("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    const toolbar = h("div", { class: "toolbar", role: "toolbar", "aria-label": "Steps" },
      h("span", { class: "group" },
        button("⇤", "Begin (Home)", () => this.go(0)), button("‹", "One back (Left)", () => this.go(this.step - 1)),
        button("›", "One on (Right)", () => this.go(this.step + 1)), button("⇥", "End (End)", () => this.go(this.last))),
      button("Where they part", "Go to the first difference (D)", () => this.go(this.parting)), this.slider, this.count);
    const element = h("div", { class: "stepper", tabindex: "0", role: "group", "aria-label": "Both runs, step by step; the arrow keys step" }, toolbar,
      h("div", { class: "curve-box" }, this.curves.drawing, h("p", { class: "legend", "aria-hidden": "true" },
        h("span", { class: "key below" }, `memory with ${plural(below.budget, "byte")}`), h("span", { class: "key above" }, `with ${plural(above.budget, "byte")}`), h("span", { class: "key evict" }, "eviction"), above.status === "oom" ? h("span", { class: "key fail" }, "out of memory") : null)),
      h("div", { class: "sides" }, ...this.sides.map((side) => side.element)),
      h("ul", { class: "legend", "aria-label": "Legend" }, ...[["free", "in memory"], ["held", "in memory, cannot be evicted"], ["evicted", "evicted"], ["released", "released"], ["later", "not computed yet"], ["current", "computed now"]]
        .map(([state, text]) => h("li", {}, h("span", { class: `state ${state}` }), text))));
    attachKeys(element, {
      ArrowLeft: () => this.go(this.step - 1),
      ArrowRight: () => this.go(this.step + 1),
      Home: () => this.go(0),
      End: () => this.go(this.last),
      d: () => this.go(this.parting),
    });
    this.go(this.parting, true);
    return element;
  }

  /** Show a step. @param {number} step @param {boolean} [quiet] */
  go(step, quiet = false) {
    if (!this.last) return;
    this.step = Math.min(Math.max(step, 0), this.last);
    const now = this.steps[this.step];
    const before = this.steps[this.step - 1];
    this.sides.forEach((side, which) => side.show(now[which], before !== undefined && before[which] === now[which]));
    this.curves?.show(this.step);
    this.slider.value = String(this.step);
    this.count.textContent = `step ${this.step} of ${this.last}${this.step === this.parting ? ", where they part" : ""}`;
    if (!quiet) announce(this.sides.map((side) => `With ${plural(side.run.budget, "byte")}: ${side.words.textContent}`).join(" "));
  }
}
