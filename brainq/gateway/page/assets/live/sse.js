/** A parser of server-sent events, by the HTML standard. It never returns an incomplete frame. */

/**
 * @param {(data: string, id: string) => void} given called with each whole frame that has data
 * @returns {(bytes: Uint8Array) => void}
 */
export function frames(given) {
  const decoder = new TextDecoder();
  let rest = "";
  let id = "";
  /** @type {string[]} */
  let data = [];

  /** @param {string} line */
  function read(line) {
    if (line === "") {
      if (data.length) given(data.join("\n"), id);
      data = [];
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return; // a comment: the stream is alive
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") data.push(value);
    else if (name === "id") id = value;
  }

  return (bytes) => {
    rest += decoder.decode(bytes, { stream: true });
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? "";
    lines.forEach(read);
  };
}
