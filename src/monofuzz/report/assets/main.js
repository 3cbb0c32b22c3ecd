// @ts-check
// The page: read what stands in it, show it, and the buttons that belong to all of it.

const THEMES = ["auto", "light", "dark"];

function setUpTheme() {
  const button = /** @type {HTMLButtonElement} */ (document.getElementById("theme-button"));
  const root = document.documentElement;
  let theme = "auto";
  try {
    theme = localStorage.getItem("monofuzz-theme") ?? "auto";
  } catch {
    // Pages from files may not be allowed to remember.
  }
  const apply = () => {
    if (theme === "auto") delete root.dataset.theme;
    else root.dataset.theme = theme;
    button.textContent = theme.charAt(0).toUpperCase() + theme.slice(1);
    button.title = "Theme";
    button.setAttribute("aria-label", `Theme: ${theme === "auto" ? "as the system's" : theme}`);
    readColours();
    for (const redraw of redraws) redraw();
  };
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    try {
      localStorage.setItem("monofuzz-theme", theme);
    } catch {
      // As above.
    }
    apply();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
  apply();
}

const KEYS = [
  ["+ −", "zoom in and out at the cursor"],
  ["0", "show all"],
  ["← →", "move by a tenth of the view; Page Up and Page Down by nearly all of it"],
  [", .", "one byte down or up"],
  ["Shift ← →", "previous and next regime"],
  ["N P", "next and previous hole"],
  ["C Shift C", "next and previous cliff"],
  ["Home End", "least and greatest budget"],
  ["F", "the axis of overheads follows what is shown, or not"],
];
const STEP_KEYS = [
  ["← →", "one step back or on"],
  ["Home End", "to the begin or the end"],
  ["D", "to the first difference"],
];
const POINTER = [
  ["wheel, pinch", "zoom at the pointer"],
  ["drag", "move; in the strip under a chart, choose what it shows"],
  ["click", "put the cursor there; on a mark, go to its hole"],
  ["double click", "zoom in five times"],
];

function setUpHelp() {
  const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("help"));
  const list = (/** @type {string[][]} */ rows) =>
    h("dl", {}, ...rows.flatMap(([keys, does]) => [h("dt", {}, keys), h("dd", {}, does)]));
  dialog.append(
    h("h2", { id: "help-title" }, "In a chart"),
    h("h3", {}, "Keys"), list(KEYS), h("h3", {}, "Pointer"), list(POINTER),
    h("h2", {}, "In a counterexample"), list(STEP_KEYS),
    h("form", { method: "dialog" }, h("button", {}, "Close")));
  document.getElementById("help-button")?.addEventListener("click", () => dialog.showModal());
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement;
    if (event.key === "?" && !typing && !dialog.open) dialog.showModal();
  });
}

async function start() {
  const main = /** @type {HTMLElement} */ (document.getElementById("main"));
  if (typeof DecompressionStream === "undefined") {
    main.append(h("p", { class: "card" }, "This browser is too old to unpack this page: it needs one from 2023 or later."));
    return;
  }
  setUpTheme();
  setUpHelp();
  const blobs = [...document.querySelectorAll(".blob")];
  const items = await Promise.all(blobs.map((blob) => unpack(blob.textContent ?? "")));
  const views = items.filter(({ head }) => head.kind === "map")
    .map((item, index) => new MapView(new RegimeMap(item), index + 1));
  const examples = items.filter(({ head }) => head.kind === "example")
    .map((item, index) => new ExampleView(item, index + 1));
  const parts = [...views.map((view) => view.element), ...examples.map((view) => view.element)];
  const links = [
    ...views.map((view) => h("a", { href: `#${view.id}` }, ...nameOf(view.map))),
    ...examples.map((view) => h("a", { href: `#${view.id}` }, ...view.title)),
  ];
  if (views.length > 1) {
    parts.unshift(comparison(views));
    links.unshift(h("a", { href: "#compare" }, "All maps"));
  }
  main.append(...parts);
  document.body.append(tip);
  for (const view of examples) view.go(view.step, true);
  if (links.length > 1) document.getElementById("contents")?.append(...links);
  soon(() => {
    performance.mark("drawn");
    document.documentElement.dataset.ready = "yes";
  });
}

void start();
