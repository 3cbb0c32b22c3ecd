// @ts-check
// Pointers, wheels and keys on a chart.

/**
 * @typedef {object} Handlers
 * @property {(budget: number | null, event?: PointerEvent) => void} point what is pointed at
 * @property {(x: number, y: number) => void} pick a click, in pixels of the plot
 */

const WHEEL = 0.0022; // per pixel of scrolling
const SETTLED = 220; // milliseconds after which a wheel that turns no longer scrolls the page
let scrolled = -Infinity;
addEventListener("scroll", () => (scrolled = performance.now()), { passive: true });

/** Let a chart be moved and zoomed by mouse, touch and pen. `unit` is how many budgets one unit of
 * the window is. @param {Plot} plot @param {Viewport} view @param {number} unit
 * @param {Handlers} handlers */
function attachPointers(plot, view, unit, handlers) {
  const element = plot.element;
  /** @type {Map<number, number>} */
  const down = new Map();
  let moved = 0;

  const xOf = (/** @type {MouseEvent} */ event) =>
    event.clientX - element.getBoundingClientRect().left;
  const at = (/** @type {number} */ x) => plot.budgetAt(x) / unit;

  element.addEventListener("wheel", (/** @type {WheelEvent} */ event) => {
    const pinched = event.ctrlKey;
    if (!pinched && performance.now() - scrolled < SETTLED) return;
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const lines = event.deltaMode === 1 ? 16 : 1;
    if (sideways) {
      event.preventDefault();
      view.pan(((event.deltaX || event.deltaY) * lines) / plot.inner);
      return;
    }
    // Nothing to zoom out of: let the page scroll.
    if (view.whole && event.deltaY > 0) return;
    event.preventDefault();
    view.zoom(Math.exp(-event.deltaY * lines * WHEEL * (pinched ? 4 : 1)), at(xOf(event)));
  }, { passive: false });

  element.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
    if (event.button) return;
    down.set(event.pointerId, xOf(event));
    if (down.size === 1) moved = 0;
    element.setPointerCapture(event.pointerId);
  });

  element.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
    const x = xOf(event);
    const before = down.get(event.pointerId);
    if (before === undefined) {
      handlers.point(plot.wholeAt(x), event);
      return;
    }
    const [other] = [...down].filter(([id]) => id !== event.pointerId);
    down.set(event.pointerId, x);
    if (other) {
      const apart = Math.max(Math.abs(before - other[1]), 8);
      const middle = at((before + other[1]) / 2);
      view.zoom(Math.max(Math.abs(x - other[1]), 8) / apart, middle);
      moved = Infinity;
    } else {
      moved += Math.abs(x - before);
      if (moved > 3) {
        element.classList.add("dragged");
        handlers.point(null);
        view.pan((before - x) / plot.inner);
      }
    }
  });

  const lift = (/** @type {PointerEvent} */ event) => {
    if (!down.delete(event.pointerId)) return;
    element.classList.remove("dragged");
    if (event.type === "pointerup" && moved <= 3) {
      const box = element.getBoundingClientRect();
      handlers.pick(event.clientX - box.left, event.clientY - box.top);
    }
  };
  element.addEventListener("pointerup", lift);
  element.addEventListener("pointercancel", lift);
  element.addEventListener("pointerleave", () => handlers.point(null));
  element.addEventListener("dblclick", (/** @type {MouseEvent} */ event) => {
    const middle = at(xOf(event));
    const part = (middle - view.lo) / view.span;
    const span = view.span / 5;
    view.glide(middle - part * span, middle + (1 - part) * span);
  });
}

/** Keys of a chart: the name of the key and what it does. @param {HTMLElement} element
 * @param {Record<string, () => void>} keys */
function attachKeys(element, keys) {
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = keys[(event.shiftKey && event.key.length > 1 ? "Shift+" : "") + event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
