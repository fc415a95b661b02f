// Which place an address is, and going between them with the browser's history, so that Back works. Not here: the places.

const routes = [
  [/^\/$/, "home"],
  [/^\/c\/([^/]+)$/, "chat"],
  [/^\/approvals$/, "approvals"],
  [/^\/settings$/, "settings"],
  [/^\/schedules$/, "schedules"],
  [/^\/link$/, "link"],
  [/^\/signin$/, "signin"],
];

let moved = () => {};

/** The place of an address: `{ name, id, query, hash, path }`; name is "missing" for an address that is none. */
export function where(url = location) {
  const { pathname, search, hash } = url;
  const query = new URLSearchParams(search);
  for (const [pattern, name] of routes) {
    const match = pattern.exec(pathname);
    if (match) return { name, id: match[1] && decodeURIComponent(match[1]), query, hash: hash.slice(1), path: pathname + search };
  }
  return { name: "missing", query, hash: "", path: pathname };
}

/** Goes to an address of this page. */
export function go(href, { replace = false } = {}) {
  const url = new URL(href, location.href);
  keepScroll();
  if (replace) history.replaceState({}, "", url);
  else history.pushState({}, "", url);
  moved({ back: false });
}

/** One step back, or to `fallback` when this page was opened here. */
export function back(fallback) {
  if (history.state?.inside) history.back();
  else go(fallback, { replace: true });
}

/** Calls `fn` at each move; links of this page are followed without loading it anew. */
export function start(fn) {
  history.scrollRestoration = "manual";
  moved = (how) => {
    if (!how.back && !history.state?.inside && how.first !== true) history.replaceState({ ...history.state, inside: true }, "");
    fn(how);
  };
  window.addEventListener("popstate", () => moved({ back: true, y: history.state?.y ?? 0 }));
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target.closest?.("a[href]");
    if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
    const url = new URL(link.href);
    if (where(url).name === "missing") return;
    event.preventDefault();
    if (url.href === location.href) {
      if (url.hash) moved({ back: false });
      return;
    }
    go(url.href);
  });
  window.addEventListener("pagehide", keepScroll);
  moved({ first: true, back: false, y: history.state?.y });
}

function keepScroll() {
  history.replaceState({ ...history.state, y: window.scrollY }, "");
}
