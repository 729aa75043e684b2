// @ts-check
/** Pencil marks: one token's note in one layer. Darkness is ‖K‖'s place in that layer, length ‖V‖'s. */

/**
 * @import {Trace} from '../trace/trace.js'
 * @import {Geometry} from './geometry.js'
 *
 * @typedef {CanvasRenderingContext2D} Context
 */

/**
 * Draws the mark of a column in a layer; `amount` 0…1 is how much of it is drawn.
 *
 * @param {Context} context
 * @param {Geometry} g
 * @param {Trace} trace
 * @param {number} layer
 * @param {number} column
 * @param {number} until positions written so far
 * @param {string} colour
 */
export function mark(context, g, trace, layer, column, until, colour, { amount = 1, boost = 0, alpha = 1 } = {}) {
  const [start, stop] = g.span(column)
  const end = Math.min(stop, until)
  if (end <= start) return
  const bin = start < g.prompt ? g.bin : g.wordBin
  const key = trace.keys.place(layer, start, end, bin)
  const value = trace.values.place(layer, start, end, bin)
  const height = Math.min(g.row, g.u)
  const length = (0.34 + 0.56 * value) * g.pitch
  const x = g.x(column) + (g.pitch - length) / 2
  const y = g.y(layer) + g.row * 0.52
  const lean = height * 0.12 * (value - 0.5)
  context.globalAlpha = alpha * Math.min(1, 0.3 + 0.7 * key + boost)
  context.strokeStyle = colour
  context.lineWidth = Math.min(height * (0.26 + 0.34 * key), g.pitch * 0.8)
  context.beginPath()
  context.moveTo(x, y + lean)
  context.lineTo(x + length * amount, y + lean - 2 * lean * amount)
  context.stroke()
}

/**
 * Where the pencil's point is while a mark is `amount` drawn.
 *
 * @param {Geometry} g
 * @param {Trace} trace
 * @param {number} layer
 * @param {number} column
 * @param {number} until
 * @param {number} amount
 */
export function tipOf(g, trace, layer, column, until, amount) {
  const [start, stop] = g.span(column)
  const end = Math.max(start + 1, Math.min(stop, until))
  const length = (0.34 + 0.56 * trace.values.place(layer, start, end, g.bin)) * g.pitch
  return { x: g.x(column) + (g.pitch - length) / 2 + length * amount, y: g.y(layer) + g.row * 0.56 }
}

/**
 * A pencil with its point at (x, y).
 *
 * @param {Context} context
 * @param {Record<string, string>} palette
 * @param {{x: number, y: number, height: number, width: number, colour: string, lean: number}} at
 */
export function pencil(context, palette, { x, y, height, width, colour, lean }) {
  const point = Math.min(height * 0.34, width * 1.5)
  /** @param {string} style @param {number[][]} points */
  const fill = (style, ...points) => {
    context.fillStyle = style
    context.beginPath()
    points.forEach(([px, py], i) => (i ? context.lineTo(px, py) : context.moveTo(px, py)))
    context.fill()
  }
  context.save()
  context.translate(x, y)
  context.rotate(lean)
  context.globalAlpha = 1
  context.fillStyle = colour
  context.fillRect(-width / 2, -height, width, height - point)
  fill(palette.pad, [-width / 2, -point], [width / 2, -point], [0, 0])
  fill(palette.graphite, [-width * 0.24, -point * 0.48], [width * 0.24, -point * 0.48], [0, 0])
  if (width > 7) {
    context.fillStyle = palette.pad
    context.globalAlpha = 0.4
    context.fillRect(-width * 0.12, -height, width * 0.2, height - point)
    context.globalAlpha = 1
    context.fillStyle = palette.graphite
    context.fillRect(-width / 2, -height - width * 0.35, width, width * 0.4)
  }
  context.restore()
}

/** @param {Context} context @param {{u: number}} g @param {number} size in units */
export function font(context, g, size, weight = '400', family = '"Exam Sans", "Noto Sans", sans-serif') {
  context.font = `${weight} ${size * g.u}px ${family}`
}

/** @param {Context} context @param {number} x @param {number} y @param {number} half @param {number} height */
export function triangle(context, x, y, half, height) {
  context.beginPath()
  context.moveTo(x - half, y - height)
  context.lineTo(x + half, y - height)
  context.lineTo(x, y)
  context.fill()
}
