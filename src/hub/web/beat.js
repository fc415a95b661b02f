// Painting in beats: what changes is gathered and drawn at most ten times a second, so that a fast stream leaves the
// main thread to the person. What a person does is drawn at once with now(). Not here: what is drawn.

/** Milliseconds between two paints of streamed changes (U57: at most ten a second). */
export const BEAT = 100;

const dirty = new Set();
const after = new Set();
let timer = 0;
let last = 0;

/** Draws with `fn` at the next beat; asked twice, drawn once. */
export function paint(fn) {
  dirty.add(fn);
  if (timer) return;
  timer = setTimeout(() => {
    // A hidden page gets no frames: it is drawn right away, so that it is right when it is shown.
    if (document.hidden) run();
    else requestAnimationFrame(run);
  }, Math.max(0, BEAT - (performance.now() - last)));
}

/** Draws with `fn` in this very task: for the answer to a press or a key. */
export function now(fn) {
  dirty.delete(fn);
  draw(fn);
  for (const look of after) look();
}

/** Calls `fn` after each paint: for what must know that things moved. Returns how to stop it. */
export function afterPaint(fn) {
  after.add(fn);
  return () => after.delete(fn);
}

function run() {
  timer = 0;
  last = performance.now();
  const batch = [...dirty];
  dirty.clear();
  for (const fn of batch) draw(fn);
  for (const look of after) look();
}

function draw(fn) {
  try {
    fn();
  } catch (error) {
    // One part that cannot be drawn must not stop the others.
    reportError(error);
  }
}
