// @ts-check
/**
 * Notes that were let go: their columns are torn off the scratch paper. The place stays, the desk shows through, a stub of
 * blank paper is left at the top. Where a column is several positions, only the share that went is torn.
 */
import { upTo } from '../trace/trace.js'

/**
 * @import {Trace} from '../trace/trace.js'
 * @import {Geometry} from './geometry.js'
 */

/** How often notes were let go until `t`. @param {Trace} trace @param {number} t */
export const tears = (trace, t) => upTo(trace.forgets, t, (forgot) => forgot.at)

/** Positions that are gone after the first `count` times, as runs [start, stop) of neighbours, in order. @param {Trace} trace @param {number} count */
export function runsOf(trace, count) {
  const gone = trace.forgets
    .slice(0, count)
    .flatMap((forgot) => forgot.positions)
    .sort((a, b) => a - b)
  /** @type {[number, number][]} */
  const runs = []
  for (const position of gone) {
    const last = runs[runs.length - 1]
    if (last && last[1] === position && position !== trace.prompt) last[1]++
    else runs.push([position, position + 1])
  }
  return runs
}

const SHADE = 'rgba(50, 34, 10, .1)' // the desk lies lower than the paper

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Geometry} g
 * @param {Record<string, string>} palette
 * @param {[number, number][]} runs
 */
export function drawTorn(context, g, palette, runs) {
  for (const [start, stop] of runs) {
    const x1 = start < g.prompt ? g.edge(start) : g.edge(start + 1e-6)
    const x2 = Math.min(g.end, g.edge(stop))
    tear(context, g, palette, x1, x2, start)
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Geometry} g
 * @param {Record<string, string>} palette
 * @param {number} x1
 * @param {number} x2
 * @param {number} seed
 */
function tear(context, g, palette, x1, x2, seed) {
  const width = x2 - x1
  const stub = Math.min(0.5 * g.u, g.row)
  const tooth = 0.42 * g.u
  const deep = Math.min(0.24 * g.u, width * 0.22)
  const [top, bottom] = [g.top + stub, g.bottom + 1.5]
  context.globalAlpha = 1
  context.clearRect(x1, g.top - 1, width, bottom - g.top + 2)
  context.beginPath()
  // Down the left edge, up the right one; the teeth are paper that was left, so they point into the gap.
  const downs = Math.max(2, Math.ceil((bottom - top) / tooth))
  /** @param {number} k @param {number} side */
  const jag = (k, side) => deep * (k % 2 ? 0.25 : 1) * (0.45 + 0.55 * noise(seed, k, side))
  for (let k = 0; k <= downs; k++) context.lineTo(x1 + jag(k, 1), Math.min(bottom, top + k * tooth))
  for (let k = downs; k >= 0; k--) context.lineTo(x2 - jag(k, 2), Math.min(bottom, top + k * tooth))
  const across = Math.floor(width / tooth)
  for (let k = across; k > 0; k--) context.lineTo(x1 + (k / (across + 1)) * width, top + (k % 2 ? 1 : -1) * 0.5 * stub * noise(seed, k, 3))
  context.closePath()
  context.fillStyle = palette.desk
  context.fill()
  context.fillStyle = SHADE
  context.fill()
  context.strokeStyle = palette.ghost
  context.lineWidth = 1
  context.stroke()
}

/** 0…1, the same each time: a torn edge does not change while one looks at it. @param {number} seed @param {number} k @param {number} side */
function noise(seed, k, side) {
  const value = Math.sin(seed * 12.9898 + k * 78.233 + side * 37.719) * 43758.5453
  return value - Math.floor(value)
}
