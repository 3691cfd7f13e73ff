/** The colour theme: light, dark or the system's. The browser remembers the choice. */

import { h } from "../core/dom.js";

const NAME = "brainq.theme";
const ORDER = ["system", "light", "dark"];

apply(chosen());

/** @param {() => void} update */
export function themeButton(update) {
  const theme = chosen();
  const next = ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length] ?? "system";
  return h(
    "button",
    {
      class: "quiet side-button theme",
      type: "button",
      "aria-label": `Colours: ${theme}. Change to ${next}`,
      title: `Colours: ${theme}`,
      onclick: () => {
        localStorage.setItem(NAME, next);
        apply(next);
        update();
      },
    },
    h("span", { class: `sun ${theme}`, "aria-hidden": "true" }),
    h("span", { class: "side-name" }, theme.charAt(0).toUpperCase() + theme.slice(1)),
  );
}

function chosen() {
  const kept = localStorage.getItem(NAME) ?? "";
  return ORDER.includes(kept) ? kept : "system";
}

/** @param {string} theme */
function apply(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
