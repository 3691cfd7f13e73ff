/**
 * Views as plain objects (`h`), and the function that updates the document to match them (`patch`).
 *
 * Text enters the document only as text nodes and attributes, so no message or result is ever parsed as HTML.
 *
 * @typedef {{tag: string, props: Record<string, any>, children: Child[], key: string | undefined}} VNode
 * @typedef {VNode | string} Child
 * @typedef {Child | number | boolean | null | undefined | any[]} Loose
 */

const DRAWN = Symbol("drawn");
const KEY = Symbol("key");
const HANDLERS = Symbol("handlers");

/**
 * An element. `key` keeps it the same element among its siblings; `onclick` and the like take functions; `style` an
 * object; `initial` is a field's first value; `once` is called with the element when it is made.
 *
 * @param {string} tag
 * @param {Record<string, any> | null} [props]
 * @param {...Loose} children
 * @returns {VNode}
 */
export function h(tag, props, ...children) {
  /** @type {Child[]} */
  const flat = [];
  flatten(children, flat);
  const key = props?.key;
  return { tag, props: props ?? {}, children: flat, key: key === undefined ? undefined : String(key) };
}

/** @param {Loose[]} loose @param {Child[]} into */
function flatten(loose, into) {
  for (const child of loose) {
    if (child === null || child === undefined || typeof child === "boolean") continue;
    if (Array.isArray(child)) flatten(child, into);
    else into.push(typeof child === "object" ? child : String(child));
  }
}

/**
 * Make these the children of `parent`, keeping existing elements.
 *
 * @param {Element} parent
 * @param {Child[]} wanted
 */
export function patch(parent, wanted) {
  if (isInPlace(parent, wanted)) {
    let node = parent.firstChild;
    for (const child of wanted) {
      const next = /** @type {Node} */ (node).nextSibling;
      draw(/** @type {Node} */ (node), child);
      node = next;
    }
    return;
  }
  const kept = matched(parent, wanted);
  const used = new Set(kept);
  for (const node of [...parent.childNodes]) if (!used.has(/** @type {any} */ (node))) node.remove();
  let at = parent.firstChild;
  wanted.forEach((child, index) => {
    const node = kept[index] ?? made(child, parent);
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
    draw(node, child);
  });
}

/** Whether the children are of the same kinds and keys, in the same order: what is nearly always so. @param {Element} parent @param {Child[]} wanted */
function isInPlace(parent, wanted) {
  let node = parent.firstChild;
  for (const child of wanted) {
    if (!node) return false;
    if (typeof child === "string" ? node.nodeType !== Node.TEXT_NODE : nameOf(node) !== child.tag || /** @type {any} */ (node)[KEY] !== child.key) return false;
    node = node.nextSibling;
  }
  return node === null;
}

/** @param {Node} node */
function nameOf(node) {
  return /** @type {any} */ (node)[DRAWN]?.tag;
}

/** @param {Node} node @param {Child} child */
function draw(node, child) {
  if (typeof child === "string") say(/** @type {Text} */ (node), child);
  else become(/** @type {HTMLElement} */ (node), child);
}

/** The node that each child keeps: the one with its key, or else the next one of the same kind without a key. */
function matched(/** @type {Element} */ parent, /** @type {Child[]} */ wanted) {
  /** @type {Map<string, Node>} */
  const keyed = new Map();
  /** @type {Map<string, Node[]>} */
  const others = new Map();
  for (const node of parent.childNodes) {
    const key = /** @type {any} */ (node)[KEY];
    if (key !== undefined) keyed.set(`${node.nodeName}/${key}`, node);
    else others.set(node.nodeName, [...(others.get(node.nodeName) ?? []), node]);
  }
  return wanted.map((child) => {
    if (typeof child === "string") return others.get("#text")?.shift();
    const name = child.tag.toUpperCase();
    if (child.key === undefined) return others.get(name)?.shift();
    const found = keyed.get(`${name}/${child.key}`);
    keyed.delete(`${name}/${child.key}`);
    return found;
  });
}

/** @param {Child} child @param {Element} parent @returns {Node} */
function made(child, parent) {
  if (typeof child === "string") return document.createTextNode(child);
  const element = document.createElement(child.tag);
  if (child.key !== undefined) /** @type {any} */ (element)[KEY] = child.key;
  if (child.props.initial !== undefined) /** @type {any} */ (element).value = child.props.initial;
  if (child.props.once) queueMicrotask(() => child.props.once(element));
  return element;
}

/** A text that only grew is added to, which is cheap however long it is. @param {Text} node @param {string} text */
function say(node, text) {
  if (node.data === text) return;
  if (node.data && text.startsWith(node.data)) node.appendData(text.slice(node.data.length));
  else node.data = text;
}

/** The very same object as last time has nothing new in it. @param {HTMLElement} element @param {VNode} wanted */
function become(element, wanted) {
  const drawn = /** @type {VNode | undefined} */ (/** @type {any} */ (element)[DRAWN]);
  if (drawn === wanted) return;
  const before = drawn?.props ?? {};
  for (const name in before) if (!(name in wanted.props)) set(element, name, undefined, before[name]);
  for (const name in wanted.props) {
    if (wanted.props[name] !== before[name]) set(element, name, wanted.props[name], before[name]);
  }
  /** @type {any} */ (element)[DRAWN] = wanted;
  patch(element, wanted.children);
  // A select can take its value only after its options exist.
  if ("value" in wanted.props) {
    const field = /** @type {HTMLInputElement} */ (element);
    if (field.value !== String(wanted.props.value ?? "")) field.value = String(wanted.props.value ?? "");
  }
}

/** @param {HTMLElement} element @param {string} name @param {any} value @param {any} before */
function set(element, name, value, before) {
  if (name === "key" || name === "initial" || name === "once" || name === "value") return;
  if (name.startsWith("on")) return listen(element, name.slice(2), value);
  if (name === "style") return restyle(element, value ?? {}, before ?? {});
  if (name === "checked" || name === "disabled" || name === "open") {
    /** @type {any} */ (element)[name] = Boolean(value);
    return;
  }
  if (name === "href" && !isSafe(value)) value = undefined;
  if (value === undefined || value === null || (value === false && !name.startsWith("aria-"))) element.removeAttribute(name);
  else element.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : String(value));
}

/** @param {HTMLElement} element @param {string} event @param {Function | undefined} handler */
function listen(element, event, handler) {
  const held = /** @type {any} */ (element);
  if (!held[HANDLERS]) held[HANDLERS] = {};
  if (!(event in held[HANDLERS])) element.addEventListener(event, (happened) => held[HANDLERS][event]?.(happened));
  held[HANDLERS][event] = handler;
}

/** @param {HTMLElement} element @param {Record<string, string>} wanted @param {Record<string, string>} before */
function restyle(element, wanted, before) {
  for (const name in before) if (!(name in wanted)) element.style.removeProperty(name);
  for (const name in wanted) if (wanted[name] !== before[name]) element.style.setProperty(name, wanted[name] ?? "");
}

/** Whether a link leads to a place of this page, or to the web: never to a script. @param {unknown} address */
export function isSafe(address) {
  return typeof address === "string" && /^(#|https?:\/\/)/i.test(address);
}
