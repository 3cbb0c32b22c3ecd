// @ts-check
// Several maps beside each other, their budgets aligned as shares of their peaks.

/** @param {MapView[]} views */
function comparison(views) {
  const maps = views.map((view) => view.map);
  const shares = maps.every((map) => map.peak);
  const unit = (/** @type {RegimeMap} */ map) => (shares ? map.peak ?? 1 : 1);
  const first = Math.min(...maps.map((map) => map.between[0] / unit(map)));
  const last = Math.max(...maps.map((map) => map.between[1] / unit(map)));
  const view = new Viewport(first, last, Math.max(...maps.map((map) => 4 / unit(map))));
  const axis = new CostAxis(Math.min(...maps.map((map) => map.least)), Math.max(...maps.map((map) => map.greatest)));
  const plots = maps.map((map) => new Plot(map, axis, SMALL));

  const traces = [...new Set(maps.map((map) => map.trace))];
  const policies = [...new Set(maps.map((map) => map.policy))];
  const grid = traces.length > 1 && policies.length > 1;
  const drawOne = plots.map((plot, index) => () => {
    const scale = unit(maps[index]);
    plot.draw(view.lo * scale, view.hi * scale);
  });
  const drawAll = () => drawOne.forEach((draw) => draw());
  const overs = () => plots.forEach((plot) => plot.drawOver());

  const cells = plots.map((plot, index) => {
    const map = maps[index];
    const scale = unit(map);
    const value = h("span", { class: "value" });
    /** @type {any} */ (plot).value = value;
    attachPointers(plot, view, scale, {
      point: (budget, event) => {
        plots.forEach((other, at) => {
          const same = budget === null ? null : Math.floor((budget / scale) * unit(maps[at]));
          const [lo, hi] = maps[at].between;
          other.pointed = same !== null && same >= lo && same < hi ? same : null;
          /** @type {any} */ (other).value.textContent = other.pointed === null ? "" : brief(maps[at], other.pointed);
        });
        soon(overs);
        if (budget === null || !event) tip.hidden = true;
        else showTip(event, linesAt(map, budget));
      },
      pick: (x) => {
        const target = views[index];
        target.element.scrollIntoView({ block: "start" });
        target.show(plot.wholeAt(x), plot.wholeAt(x) + 1, (view.span * scale) / 4);
        target.plot.element.focus({ preventScroll: true });
      },
    });
    plot.element.tabIndex = 0;
    plot.element.setAttribute("role", "application");
    plot.element.setAttribute("aria-roledescription", "zoomable chart");
    plot.element.setAttribute("aria-label", `${map.name}; plus, minus and arrows move all charts, Enter goes to this map`);
    attachKeys(plot.element, {
      "+": () => view.zoom(2),
      "=": () => view.zoom(2),
      "-": () => view.zoom(1 / 2),
      0: () => view.reset(),
      ArrowLeft: () => view.pan(-ROOM),
      ArrowRight: () => view.pan(ROOM),
      Enter: () => (location.hash = views[index].id),
    });
    const title = grid ? null : [h("a", { href: `#${views[index].id}` }, ...nameOf(map))];
    const element = h("div", { class: "cell" }, h("div", { class: "cell-head" }, ...(title ?? [h("a", { href: `#${views[index].id}` }, map.holes.length ? plural(map.holes.length, "hole") : map.head.certified ? "no holes" : "no holes known")]), value), plot.element);
    if (grid) {
      element.style.gridColumn = String(traces.indexOf(map.trace) + 2);
      element.style.gridRow = String(policies.indexOf(map.policy) + 2);
    }
    return element;
  });
  view.listeners.add(() => soon(drawAll));
  redraws.push(() => soon(drawAll));
  plots.forEach((plot, index) => new ResizeObserver(() => soon(drawOne[index])).observe(plot.element));

  const heads = grid ? [
    ...traces.map((trace, index) => place(h("div", { class: "column-head" }, h("bdi", {}, trace)), index + 2, 1)),
    ...policies.map((policy, index) => place(h("div", { class: "row-head" }, h("bdi", {}, policy)), 1, index + 2)),
  ] : [];
  const charts = h("div", { class: grid ? "grid" : "stack" }, ...heads, ...cells);
  if (grid) charts.style.gridTemplateColumns = `max-content repeat(${traces.length}, minmax(200px, 1fr))`;
  return h("section", { class: "card compare", id: "compare", "aria-labelledby": "compare-title" },
    h("h2", { id: "compare-title" }, "All maps"),
    h("p", { class: "lead" }, `Budgets aligned ${shares ? "as shares of each peak" : "as they are"}, one scale of overheads; the charts zoom and move together. A click opens the map there.`),
    h("div", { class: "scroll" }, charts),
    summary(views));
}

/** @param {HTMLElement} element @param {number} column @param {number} row */
function place(element, column, row) {
  element.style.gridColumn = String(column);
  element.style.gridRow = String(row);
  return element;
}

/** @param {RegimeMap} map @param {number} budget */
function brief(map, budget) {
  const row = map.at(budget);
  const kind = map.kind(row);
  return kind === "ok" ? times(map.overhead[row]) : { oom: "too little", hole: "hole", thrashed: "thrashes", timeout: "timeout", gap: "unexplored" }[kind];
}

/** @param {MapView[]} views */
function summary(views) {
  const firstOk = (/** @type {RegimeMap} */ map) => (map.firstOk < 0 ? Infinity : map.lo[map.firstOk] / (map.peak ?? 1));
  const widest = (/** @type {RegimeMap} */ map) => Math.max(0, ...map.holes.map((hole) => hole.bytes));
  /** @type {Field<MapView>[]} */
  const fields = [
    { title: "trace", left: true, value: ({ map }) => map.trace, text: ({ map }) => h("bdi", {}, map.trace) },
    { title: "policy", left: true, value: ({ map }) => map.policy, text: ({ map }) => h("bdi", {}, map.policy) },
    ...["feasibility", "cost"].map((claim) => ({ title: claim, left: true,
      value: (/** @type {MapView} */ { map }) => map.head.verdicts[claim].verdict,
      text: (/** @type {MapView} */ { map }) => h("span", { class: `word ${map.head.verdicts[claim].verdict}` }, map.head.verdicts[claim].verdict) })),
    { title: "known", value: ({ map }) => map.head.covered, text: ({ map }) => (map.head.certified ? "certified" : percent(map.head.covered)) },
    { title: "runs from", value: ({ map }) => firstOk(map), text: ({ map }) => (map.firstOk < 0 ? "–" : map.peak ? firstOk(map).toFixed(6) : exact(firstOk(map))) },
    { title: "holes", value: ({ map }) => map.holes.length },
    { title: "widest", value: ({ map }) => widest(map), text: ({ map }) => (widest(map) ? (map.peak ? size(widest(map)) : exact(widest(map))) : "–") },
    { title: "cliffs", value: ({ map }) => map.cliffs.length },
    { title: "least overhead", value: ({ map }) => map.least, text: ({ map }) => (map.firstOk < 0 ? "–" : times(map.least)) },
    { title: "greatest", value: ({ map }) => map.greatest, text: ({ map }) => (map.firstOk < 0 ? "–" : times(map.greatest)) },
    { title: "regimes", value: ({ map }) => map.count },
  ];
  return sortable(`${plural(views.length, "map")}; a row leads to its map`, fields, views, (view) => view.element.scrollIntoView({ block: "start" }));
}
