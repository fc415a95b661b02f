// A small virtual DOM: h() describes, render() makes the document so. It touches only what changed, so focus,
// selection, opened details and typed text stay where they are. Not here: anything about our places or data.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "use", "path", "circle"]);
// Set as properties, and only when the description changes: what a person typed or opened is not written over.
const PROPERTIES = new Set(["value", "checked", "disabled", "open", "selected", "hidden"]);

/** Describes an element. Kids may be strings, numbers, descriptions or nested lists; empty ones are dropped. */
export function h(tag, props, ...kids) {
  return { tag, props: props ?? {}, kids: flat(kids), el: null };
}

function flat(kids) {
  const out = [];
  for (const kid of kids.flat(Infinity)) {
    if (kid === null || kid === undefined || typeof kid === "boolean" || kid === "") continue;
    out.push(typeof kid === "object" ? kid : { tag: "#", text: String(kid), props: {}, kids: [], el: null });
  }
  return out;
}

/** Makes the children of `root` what `kids` describe. */
export function render(root, ...kids) {
  const next = flat(kids);
  patch(root, root.__kids ?? [], next);
  root.__kids = next;
}

function patch(parent, before, after) {
  if (before.length === 0 && parent.firstChild) parent.replaceChildren();
  const keyed = new Map();
  const loose = [];
  for (const old of before) {
    if (old.props.key !== undefined) keyed.set(old.props.key, old);
    else loose.push(old);
  }
  const used = new Set();
  let at = 0;
  for (const node of after) {
    let old;
    if (node.props.key !== undefined) {
      old = keyed.get(node.props.key);
      if (old && (old.tag !== node.tag || used.has(old))) old = undefined;
    } else {
      // The next loose one of the same tag: a row that vanished above does not rebuild those below.
      let look = at;
      while (look < loose.length && loose[look].tag !== node.tag) look += 1;
      if (look < loose.length) {
        old = loose[look];
        at = look + 1;
      }
    }
    if (old) used.add(old);
    if (old) update(old, node);
    else create(node);
  }
  for (const old of before) if (!used.has(old)) old.el.remove();
  let place = parent.firstChild;
  for (const node of after) {
    if (node.el === place) place = place.nextSibling;
    else parent.insertBefore(node.el, place);
  }
}

function create(node) {
  if (node.tag === "#") {
    node.el = document.createTextNode(node.text);
    return;
  }
  const el = SVG_TAGS.has(node.tag) ? document.createElementNS(SVG, node.tag) : document.createElement(node.tag);
  node.el = el;
  // A part draws itself and a block of the server's HTML is inserted whole: neither has kids of ours.
  if (node.props.html === undefined && node.kids.length > 0) patch(el, [], node.kids);
  for (const [name, value] of Object.entries(node.props)) setProp(el, name, value, undefined);
  node.props.ref?.(el);
}

function update(old, node) {
  const el = old.el;
  node.el = el;
  if (node.tag === "#") {
    if (old.text !== node.text) el.data = node.text;
    return;
  }
  if (node.props.html === undefined && (node.kids.length > 0 || old.kids.length > 0)) patch(el, old.kids, node.kids);
  for (const [name, value] of Object.entries(node.props)) {
    if (value !== old.props[name]) setProp(el, name, value, old.props[name]);
  }
  for (const name of Object.keys(old.props)) {
    if (!(name in node.props)) setProp(el, name, undefined, old.props[name]);
  }
}

function setProp(el, name, value) {
  if (name === "key" || name === "ref") return;
  if (name === "html") {
    el.innerHTML = value ?? "";
  } else if (name[0] === ".") {
    el[name.slice(1)] = value;
  } else if (name.startsWith("on")) {
    const type = name.slice(2);
    el.__on ??= {};
    if (!(type in el.__on)) el.addEventListener(type, (event) => el.__on[type]?.(event));
    el.__on[type] = value;
  } else if (PROPERTIES.has(name)) {
    el[name] = value ?? (name === "value" ? "" : false);
  } else if (value === undefined || value === null || value === false) {
    el.removeAttribute(name);
  } else {
    el.setAttribute(name, value === true ? "" : String(value));
  }
}

/** An element from one block of the server's HTML; several roots or bare text get a wrapper, so one block is one element. */
export function block(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  const { content } = template;
  if (content.childNodes.length === 1 && content.firstElementChild) return content.firstElementChild;
  const wrap = document.createElement("div");
  wrap.append(content);
  return wrap;
}

/** A control's drawing; always beside a word or in a control with a name. */
export const icon = (name, cls = "i") => h("svg", { class: cls, viewBox: "0 0 20 20", "aria-hidden": "true" }, h("use", { href: `#i-${name}` }));

/** A state's mark; the word beside it says the same. */
export function mark(name) {
  if (name === "work") {
    return h("svg", { class: "st st-work", viewBox: "0 0 16 16", "aria-hidden": "true" },
      h("circle", { fill: "currentColor", stroke: "none", cx: "8", cy: "8", r: "2.6" }),
      h("path", { class: "ring", d: "M8 1.8a6.2 6.2 0 016.2 6.2M8 14.2A6.2 6.2 0 011.8 8" }));
  }
  return h("svg", { class: "st", viewBox: "0 0 16 16", "aria-hidden": "true" }, h("use", { href: `#s-${name}` }));
}

/** The point between two facts: a line never begins with it. */
export const sep = () => h("span", { class: "sep" }, "\u00a0· ");

/** Facts in a row with points between them; empty ones fall out. */
export function facts(...list) {
  const full = list.flat().filter((one) => one !== null && one !== undefined && one !== false && one !== "");
  return full.flatMap((one, i) => (i === 0 ? [one] : [sep(), one]));
}
