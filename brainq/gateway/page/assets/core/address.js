/**
 * The address after the `#` selects what the page shows: `#/turns/01k7x2?call=c1-0`. Links are plain links, the back
 * button works, and a reload shows the same.
 *
 * @typedef {{path: string[], query: Record<string, string>}} Place
 */

/** @param {string} hash @returns {Place} */
export function placeOf(hash) {
  const [path = "", query] = hash.replace(/^#\/?/, "").split("?", 2);
  return {
    path: path.split("/").filter(Boolean).map(decoded),
    query: Object.fromEntries(new URLSearchParams(query ?? "")),
  };
}

/**
 * @param {string[]} path
 * @param {Record<string, string | undefined>} [query] what is empty is left out
 */
export function link(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value);
  const asked = given.length ? `?${new URLSearchParams(/** @type {any} */ (given))}` : "";
  return `#/${path.map(encodeURIComponent).join("/")}${asked}`;
}

/** Go to a place; `replace`: the back button skips the one that is left. @param {string} to @param {boolean} [replace] */
export function go(to, replace = false) {
  if (replace) location.replace(to);
  else location.hash = to;
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
