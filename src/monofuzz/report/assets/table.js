// @ts-check
// Tables that are sorted by a click on a column's head.

/**
 * @template T
 * @typedef {{title: string, value: (item: T) => number | string, text?: (item: T) => string | Node,
 *   left?: boolean, hint?: string}} Field
 */

const PAGE = 50;

/**
 * A table of items. A row is chosen by a click, or by Enter when it is focused.
 * @template T
 * @param {string} caption
 * @param {Field<T>[]} fields
 * @param {T[]} items
 * @param {((item: T) => void) | null} choose
 * @returns {HTMLElement}
 */
function sortable(caption, fields, items, choose) {
  let shown = PAGE;
  let by = -1;
  let descending = false;
  let order = items;
  const body = h("tbody");
  const more = h("button", { type: "button", class: "more", onclick: () => {
    shown *= 4;
    fill();
  } });

  const heads = fields.map((field, column) => {
    const button = h("button", { type: "button", title: field.hint ?? null, onclick: () => sort(column) }, field.title);
    return h("th", { scope: "col", class: field.left ? "left" : null }, button);
  });

  /** @param {number} column */
  function sort(column) {
    const first = items.length ? typeof fields[column].value(items[0]) === "number" : false;
    descending = by === column ? !descending : first;
    by = column;
    const { value } = fields[column];
    order = [...items].sort((one, other) => {
      const [a, b] = [value(one), value(other)];
      const sign = a < b ? -1 : a > b ? 1 : 0;
      return descending ? -sign : sign;
    });
    heads.forEach((head, index) => {
      if (index === by) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    fill();
  }

  function fill() {
    body.replaceChildren(...order.slice(0, shown).map((item) => {
      const cells = fields.map(({ value, text, left }) =>
        h("td", { class: left ? "left" : null }, text ? text(item) : exact(Number(value(item)))));
      if (!choose) return h("tr", {}, ...cells);
      const act = () => choose(item);
      return h("tr", { tabindex: "0", class: "choice", onclick: act, onkeydown: (/** @type {KeyboardEvent} */ event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        act();
      } }, ...cells);
    }));
    more.hidden = order.length <= shown;
    more.textContent = `Show more of ${exact(order.length)}`;
  }

  fill();
  const table = h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...heads)), body);
  return h("div", { class: "table" }, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table), more);
}
