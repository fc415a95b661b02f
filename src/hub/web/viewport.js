// The part of the window that a keyboard leaves free: a chat's height follows it, so that composer and buttons stay in
// reach (U25). Browsers that shrink the window themselves need nothing; the figure is then the window's. Not here: the look.

/** Keeps `--seen` (height) and `--seen-top` on the root as the visual viewport changes. */
export function watchViewport() {
  const seen = window.visualViewport;
  if (!seen) return;
  const root = document.documentElement;
  const set = () => {
    // While a page is zoomed in with two fingers the layout stays as it is.
    if (seen.scale > 1.01) return;
    root.style.setProperty("--seen", `${Math.round(seen.height)}px`);
    root.style.setProperty("--seen-top", `${Math.max(0, Math.round(seen.offsetTop))}px`);
  };
  seen.addEventListener("resize", set);
  seen.addEventListener("scroll", set);
  set();
}
