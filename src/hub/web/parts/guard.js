// Keeps buttons from being pressed by accident: no press counts for half a second after they appeared or moved (U13).
// Not here: what the buttons do.

import { afterPaint } from "../beat.js";

/** For how long buttons take no press after they appeared or moved, in ms. */
export const INERT_MS = 500;

export class Guard {
  /** Watches where `find()` (the row of buttons) is on the screen. */
  constructor(find) {
    this.find = find;
    this.moved = performance.now();
    this.look = () => this.check();
  }

  start() {
    this.moved = performance.now();
    this.box = null;
    this.stop();
    this.offPaint = afterPaint(this.look);
    // Whatever moves it outside of our own paints: a scroll, the keyboard, the window.
    document.addEventListener("scroll", this.look, { capture: true, passive: true });
    window.addEventListener("resize", this.look);
    window.visualViewport?.addEventListener("resize", this.look);
    this.sizes = new ResizeObserver(this.look);
    this.sizes.observe(document.body);
  }

  stop() {
    this.offPaint?.();
    document.removeEventListener("scroll", this.look, { capture: true });
    window.removeEventListener("resize", this.look);
    window.visualViewport?.removeEventListener("resize", this.look);
    this.sizes?.disconnect();
  }

  check() {
    const row = this.find();
    if (!row) return;
    const { top, left } = row.getBoundingClientRect();
    if (this.box === null || this.box === undefined) {
      this.moved = performance.now();
    } else if (Math.abs(this.box.top - top) > 1 || Math.abs(this.box.left - left) > 1) {
      this.moved = performance.now();
    }
    this.box = { top, left };
  }

  /** A press begins: whether it counts is decided by where things were then. */
  down() {
    this.check();
    this.pressed = performance.now();
  }

  /** True when a press may count. */
  allows() {
    this.check();
    const since = this.pressed !== undefined && performance.now() - this.pressed < 2_000 ? this.pressed : performance.now();
    this.pressed = undefined;
    return since - this.moved >= INERT_MS;
  }
}
