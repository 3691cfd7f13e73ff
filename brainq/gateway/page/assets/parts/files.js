/** The files of a message, each with its name; images are shown. */

import { enc, request } from "../core/api.js";
import { h } from "../core/dom.js";
import { bytes } from "../core/words.js";

const NEAR = { rootMargin: "300px" };
const SHOWN = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/**
 * @typedef {{sha256: string, media_type: string, size: number, name: string}} Attachment
 * @param {string} turnId
 * @param {Attachment[] | undefined} attachments
 */
export function files(turnId, attachments) {
  if (!attachments?.length) return null;
  return h("div", { class: "files", key: "files" }, attachments.map((one) => file(turnId, one)));
}

/** @param {string} turnId @param {Attachment} one */
function file(turnId, one) {
  const name = one.name || (one.media_type.startsWith("image/") ? "an image" : "a file");
  return h(
    "figure",
    { class: "file", key: `${turnId} ${one.sha256} ${one.name}` },
    SHOWN.includes(one.media_type) ? h("img", { alt: name, once: shownIn(`v1/turns/${enc(turnId)}/files/${one.sha256}`) }) : null,
    h("figcaption", null, h("strong", null, name), h("span", { class: "muted" }, ` ${one.media_type}, ${bytes(one.size)}`)),
  );
}

/** Its bytes are asked for shortly before it comes into sight, as all else is: with the caller's token. @param {string} path */
function shownIn(path) {
  return (/** @type {HTMLImageElement} */ image) => {
    const sight = new IntersectionObserver((seen) => {
      if (!seen.some((one) => one.isIntersecting)) return;
      sight.disconnect();
      void load(image, path);
    }, NEAR);
    sight.observe(image);
  };
}

/** @param {HTMLImageElement} image @param {string} path */
async function load(image, path) {
  let address = "";
  try {
    address = URL.createObjectURL(await (await request("GET", path)).blob());
    image.src = address;
    await image.decode();
  } catch (failure) {
    image.alt += `: ${address ? "cannot be shown" : /** @type {Error} */ (failure).message}`;
    image.removeAttribute("src");
  }
  URL.revokeObjectURL(address); // what is drawn stays
}
