// Following the end of a scroller: only while the person is there. Any step upward, a selection in it or a search in
// the page ends it; reaching the end takes it up again (U1). The line being read never moves: whatever changes above
// it is balanced. Not here: what is in the scroller.

// Within this many pixels of the end counts as at the end.
const NEAR = 4;

export class Follow {
  /** `changed` hears when following starts or ends. */
  constructor(scroller, changed = () => {}) {
    this.el = scroller;
    this.changed = changed;
    this.on = true;
    this.top = 0;
    this.undo = [];
    this.listen(scroller, "wheel", (event) => { if (event.deltaY < 0 && !event.ctrlKey) this.end(); }, { passive: true });
    this.listen(scroller, "touchstart", (event) => { this.finger = event.touches[0]?.clientY; }, { passive: true });
    this.listen(scroller, "touchmove", (event) => {
      const y = event.touches[0]?.clientY;
      if (this.finger !== undefined && y > this.finger + 2) this.end();
      this.finger = y;
    }, { passive: true });
    this.listen(scroller, "keydown", (event) => {
      if (["ArrowUp", "PageUp", "Home"].includes(event.key) || (event.key === " " && event.shiftKey)) {
        if (event.target === scroller) this.end();
      }
    });
    this.listen(scroller, "scroll", () => this.scrolled(), { passive: true });
    this.listen(document, "selectionchange", () => {
      const selection = document.getSelection();
      if (selection && !selection.isCollapsed && scroller.contains(selection.anchorNode)) this.end();
    });
    this.listen(document, "keydown", (event) => {
      const find = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "f";
      if (find || event.key === "F3") this.end();
    }, true);
  }

  listen(target, type, fn, options) {
    target.addEventListener(type, fn, options);
    this.undo.push(() => target.removeEventListener(type, fn, options));
  }

  close() {
    for (const undo of this.undo) undo();
  }

  get atEnd() {
    return this.el.scrollHeight - this.el.clientHeight - this.el.scrollTop <= NEAR;
  }

  end() {
    // Nothing to scroll: there is no upward, and no reason to stop.
    if (!this.on || this.el.scrollHeight <= this.el.clientHeight + NEAR) return;
    this.on = false;
    this.changed(false);
  }

  scrolled() {
    const { scrollTop } = this.el;
    const up = scrollTop < this.top - 1;
    const down = scrollTop > this.top;
    this.top = scrollTop;
    if (this.own !== undefined && Math.abs(scrollTop - this.own) <= 1) {
      // Our own step, or its echo.
      this.own = undefined;
      return;
    }
    this.own = undefined;
    if (this.on && up && !this.atEnd) this.end();
    else if (!this.on && down && this.atEnd && document.getSelection()?.isCollapsed !== false) this.begin();
  }

  begin() {
    if (this.on) return;
    this.on = true;
    this.changed(true);
  }

  /** To the end, and following from there. */
  toEnd() {
    this.begin();
    this.step(this.el.scrollHeight);
  }

  step(top) {
    this.el.scrollTop = top;
    this.top = this.el.scrollTop;
    this.own = this.top;
  }

  /** Runs `change` so that the line being read stays, or, when following, so that the end stays in view. */
  hold(change) {
    if (this.on) {
      change();
      if (!this.atEnd || this.el.scrollTop !== this.top) this.step(this.el.scrollHeight);
      return;
    }
    const anchor = this.anchor();
    const before = anchor?.getBoundingClientRect().top;
    change();
    if (!anchor?.isConnected) return;
    const moved = anchor.getBoundingClientRect().top - before;
    if (Math.abs(moved) >= 0.5) this.step(this.el.scrollTop + moved);
  }

  // The first element of which something is seen; inside a long one, the block being read.
  anchor() {
    const { top, bottom } = this.el.getBoundingClientRect();
    const first = (parent) => {
      for (const kid of parent.children) {
        // Room for what is not drawn, and the edge above all, are not what is read.
        if (kid.hasAttribute("data-space") || kid.hasAttribute("data-edge")) continue;
        const box = kid.getBoundingClientRect();
        // One that is not seen yet is not being read.
        if (box.height > 0 && box.bottom > top + 1) return box.top < bottom ? kid : null;
      }
      return null;
    };
    let found = first(this.el);
    // Inside a long answer the block being read, not its beginning far above.
    while (found && found.getBoundingClientRect().top < top && (found.classList.contains("entry") || found.classList.contains("prose"))) {
      const inner = first(found);
      if (!inner) break;
      found = inner;
    }
    return found;
  }
}
