// @ts-check
// Numbers as people read them, the same way as the command line prints them.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** An integer with separators. @param {number} count */
function exact(count) {
  return whole.format(count);
}

/** Bytes in the largest unit that leaves at least 1. @param {number} count */
function size(count) {
  if (count < 1024) return `${exact(count)} ${count === 1 ? "byte" : "bytes"}`;
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value.toFixed(value < 10 ? 3 : value < 100 ? 2 : 1)} ${UNITS[unit]}`;
}

/** A counted noun: `1 hole`, `8,522 regimes`. @param {number} count @param {string} noun */
function plural(count, noun) {
  return `${exact(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** An overhead: `2.077×`. @param {number} value */
function times(value) {
  return `${value.toLocaleString("en-US", { minimumFractionDigits: 3, maximumFractionDigits: 3 })}×`;
}

/** A share of the peak, to six digits or to as many as tell one budget from the next.
 * @param {number} budget @param {number} peak @param {number} [digits] */
function share(budget, peak, digits = 6) {
  return (budget / peak).toFixed(digits);
}

/** How many digits of a share tell single bytes apart. @param {number} peak */
function shareDigits(peak) {
  return Math.max(6, Math.ceil(Math.log10(peak)));
}

/** A share of the range, never rounded up to 100% nor down to 0%. @param {number} part */
function percent(part) {
  if (part === 0 || part === 1) return `${part * 100}%`;
  return `${Math.min(Math.max(part * 100, 0.01), 99.99).toFixed(2)}%`;
}

/** A word for a shell. @param {string} word */
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/**
 * An element with attributes and children; text never becomes markup.
 * @param {string} tag
 * @param {Record<string, any>} [attributes] those that begin with `on` are listeners
 * @param {...(Node | string | null | undefined)} children
 * @returns {any}
 */
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child) => child != null).map((child) => child ?? ""));
  return element;
}

/** Say something to a screen reader. @param {string} text */
function announce(text) {
  const live = document.getElementById("live");
  if (live) live.textContent = text;
}
