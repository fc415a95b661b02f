// What must hold of every place: nothing wider than the window, nothing cut without a way to it, every control named and
// big enough for a thumb, the focus seen, and axe's rules for A and AA, contrast computed. Not here: which places.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** What is wrong with how the place that `page` shows fits its window. */
export function fit(page, { touch }) {
  return page.evaluate((thumb) => {
    const wrong = [];
    const root = document.documentElement;
    if (root.scrollWidth > root.clientWidth) wrong.push(`the page is ${root.scrollWidth} wide in ${root.clientWidth}`);
    const name = (el) => `${el.tagName.toLowerCase()}${el.id ? `#${el.id}` : ""}.${[...el.classList].join(".")} "${(el.getAttribute("aria-label") ?? el.textContent).trim().slice(0, 40)}"`;
    const seen = (el) => el.checkVisibility({ visibilityProperty: true, opacityProperty: true });
    const scrolls = (el) => {
      for (let at = el.parentElement; at && at !== document.body; at = at.parentElement) {
        const { overflowX, textOverflow } = getComputedStyle(at);
        if (/auto|scroll/.test(overflowX) && at.scrollWidth > at.clientWidth) return true;
        if (/hidden|clip/.test(overflowX) && textOverflow === "ellipsis") return true;
      }
      return false;
    };
    for (const el of document.body.querySelectorAll("*")) {
      if (!seen(el) || el.closest(".sr, svg, .sprite, [aria-hidden=true]")) continue;
      const style = getComputedStyle(el);
      const box = el.getBoundingClientRect();
      if (box.width === 0 || box.height === 0) continue;
      if ((box.right > root.clientWidth + 1 || box.left < -1) && style.position !== "absolute" && !scrolls(el)) wrong.push(`beside the window: ${name(el)} ${Math.round(box.left)}..${Math.round(box.right)}`);
      // Text that is cut says so by an ellipsis, or can be scrolled to.
      if (/hidden|clip/.test(style.overflowX) && el.scrollWidth > el.clientWidth + 1 && style.textOverflow !== "ellipsis" && el.textContent.trim() !== "") wrong.push(`cut: ${name(el)}`);
      if (/hidden|clip/.test(style.overflowY) && el.scrollHeight > el.clientHeight + 2 && style.display !== "inline" && el.textContent.trim() !== "" && style.webkitLineClamp === "none" && el.tagName !== "TEXTAREA") wrong.push(`cut below: ${name(el)} ${el.scrollHeight} in ${el.clientHeight}`);
    }
    if (thumb) {
      for (const el of document.querySelectorAll("a[href], button, input, select, textarea, summary, [role=button], [tabindex='0'][role]")) {
        if (!seen(el) || el.closest(".sr") || el.closest("p, li, .prose, .mid, .meta") !== null && getComputedStyle(el).display === "inline") continue;
        if (el.getAttribute("role") === "log" || el.getAttribute("role") === "region") continue;
        const target = el.matches("input[type=radio], input[type=checkbox]") ? el.closest("label") ?? el : el;
        const box = target.getBoundingClientRect();
        if (box.width === 0) continue;
        if (box.height < 43.5 || box.width < 43.5) wrong.push(`small for a thumb: ${name(el)} ${Math.round(box.width)}×${Math.round(box.height)}`);
      }
    }
    for (const el of document.querySelectorAll("input, textarea, select")) {
      if (seen(el) && parseFloat(getComputedStyle(el).fontSize) < 16 && !["radio", "checkbox"].includes(el.type)) wrong.push(`text under 16 px: ${name(el)}`);
    }
    return [...new Set(wrong)];
  }, touch);
}

/** axe's findings, each as one line. Sizes are judged by fit(), which asks for more and knows what floats above. */
export async function axe(page, what = "all") {
  // The focus ring and a turning mark in the middle of a change are not what is judged.
  const has = await page.evaluate(() => "axe" in window);
  if (!has) await page.evaluate(AXE);
  return page.evaluate(async (only) => {
    const { violations } = await window.axe.run(document, { runOnly: only, rules: { "target-size": { enabled: false } }, resultTypes: ["violations"] });
    return violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.target.join(" ")} ${node.any[0]?.message ?? node.all[0]?.message ?? node.none[0]?.message ?? ""}`));
  }, what === "colours" ? { type: "rule", values: ["color-contrast"] } : { type: "tag", values: TAGS });
}

/** Each control that takes the focus without showing it. */
export function focusRings(page) {
  return page.evaluate(() => {
    const wrong = [];
    const before = document.activeElement;
    for (const el of document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]:not([tabindex='-1'])")) {
      if (!el.checkVisibility({ visibilityProperty: true }) || el.disabled) continue;
      el.focus({ focusVisible: true, preventScroll: true });
      if (document.activeElement !== el) continue;
      const ring = (at) => at && ((parseFloat(getComputedStyle(at).outlineWidth) >= 2 && getComputedStyle(at).outlineStyle !== "none") || getComputedStyle(at).boxShadow !== "none");
      if (!ring(el) && !ring(el.closest("label, .compose, .choice, .switch"))) wrong.push(`${el.tagName.toLowerCase()}.${[...el.classList].join(".")} ${el.textContent.trim().slice(0, 30)}`);
    }
    before?.focus?.({ preventScroll: true });
    return wrong;
  });
}

/** Landmarks and live regions that a screen reader goes by. */
export function landmarks(page) {
  return page.evaluate(() => {
    const wrong = [];
    const count = (selector) => [...document.querySelectorAll(selector)].filter((el) => el.checkVisibility()).length;
    if (count("main, [role=main]") !== 1) wrong.push(`${count("main")} mains`);
    if (count("h1") !== 1) wrong.push(`${count("h1")} headings of the first level`);
    for (const nav of document.querySelectorAll("nav")) if (nav.checkVisibility() && !nav.getAttribute("aria-label") && !nav.getAttribute("aria-labelledby")) wrong.push("a nav without a name");
    if (document.querySelector("#live-polite")?.getAttribute("aria-live") !== "polite") wrong.push("no polite region");
    if (document.querySelector("#live-firm")?.getAttribute("aria-live") !== "assertive") wrong.push("no firm region");
    const ids = [...document.querySelectorAll("[id]")].map((el) => el.id);
    for (const id of new Set(ids)) if (ids.filter((one) => one === id).length > 1) wrong.push(`id ${id} twice`);
    return wrong;
  });
}
