// @ts-check
/** Seconds to places on the timeline and back. To scale, except that a very long wait is folded. */

const LONGEST_WAIT = 0.4 // a wait that takes more than this share of the whole is drawn as a quarter, and marked

/** @import {Trace} from '../trace/trace.js' */

/** {x(seconds), t(place), begun: when tokenising began, folded: whether the wait before it is not to scale} @param {Trace} trace @param {number} width @param {number} end */
export function axisOf(trace, width, end) {
  const begun = trace.started ? trace.started.at - trace.started.tokenise_seconds : trace.waits.length ? end : 0
  const folded = Boolean(trace.started) && begun > LONGEST_WAIT * end
  if (!folded) return { begun, folded, x: (/** @type {number} */ t) => (t / end) * width, t: (/** @type {number} */ x) => (x / width) * end }
  const edge = width / 4
  return {
    begun,
    folded,
    x: (/** @type {number} */ t) => (t < begun ? (t / begun) * edge : edge + ((t - begun) / (end - begun)) * (width - edge)),
    t: (/** @type {number} */ x) => (x < edge ? (x / edge) * begun : begun + ((x - edge) / (width - edge)) * (end - begun)),
  }
}
