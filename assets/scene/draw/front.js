/** On top of the marks: the ones being written and their pencils, who looks where, layer numbers, the ruler. */
import { fill } from '../dom.js'
import { number, percent } from '../text.js'
import { time } from './headline.js'
import { font, mark, pencil, tipOf, triangle } from './marks.js'
import { drawRuler } from './ruler.js'

/** Layers until a note has turned from orange to grey. */
export const FRESH = 2.2

export function drawFront(context, g, scene, moment, written) {
  if (!g.layers) return
  drawSlid(context, g, scene, moment)
  if (moment.reading) drawReading(context, g, scene, moment)
  if (moment.step >= 0) drawWriting(context, g, scene, moment)
  drawLabels(context, g, scene, moment)
  if (moment.phase === 'end') drawSummary(context, g, scene, moment)
  drawArcs(context, g, scene, moment)
  drawRuler(context, g, scene, moment, written)
}

/** Wet notes of the pass at work, orange turning grey; one pencil per column; a thread to each from the exam paper. */
function drawReading(context, g, scene, { pass, rows }) {
  const { palette, trace } = scene
  const first = g.columnOf(pass.start)
  const last = g.columnOf(pass.stop - 1)
  const current = Math.min(g.layers - 1, Math.floor(rows))
  const amount = rows - Math.floor(rows)
  for (let layer = Math.max(0, Math.floor(rows - FRESH)); layer <= current && layer < rows; layer++) {
    const age = Math.min(1, Math.max(0, (rows - layer - 1) / FRESH))
    const part = Math.min(1, rows - layer)
    for (let column = first; column <= last; column++) {
      mark(context, g, trace, layer, column, pass.stop, palette.graphite, { amount: part })
      mark(context, g, trace, layer, column, pass.stop, palette.prefill, { amount: part, alpha: 1 - age })
    }
  }
  if (rows >= g.layers) return
  const height = Math.max(3 * g.row, 0.95 * g.u)
  for (let column = first; column <= last; column++) {
    const tip = tipOf(g, trace, current, column, pass.stop, amount)
    pencil(context, palette, {
      ...tip,
      height,
      width: Math.min(g.pitch * 0.44, 0.5 * g.u),
      colour: palette.prefill,
      lean: 0.16,
    })
  }
  drawThreads(context, g, palette, first, last)
}

function drawThreads(context, g, palette, first, last) {
  const bus = 0.75 * g.u
  const spread = Math.min(0.09, 5 / (last - first + 1))
  context.strokeStyle = palette.prefill
  context.fillStyle = palette.prefill
  context.lineWidth = 1
  context.globalAlpha = 0.62
  for (let column = first; column <= last; column++) {
    const x = g.x(column) + g.pitch / 2
    const y = bus + (column - first) * spread
    context.beginPath()
    context.moveTo(0, y)
    context.lineTo(x - 6, y)
    context.quadraticCurveTo(x, y, x, y + 8)
    context.lineTo(x, g.top - 3)
    context.stroke()
    triangle(context, x, g.top - 1, Math.min(g.pitch * 0.26, 0.3 * g.u), 5)
  }
  context.globalAlpha = 1
}

/** One new column: its marks so far, one pencil, one thread from the answer sheet. */
function drawWriting(context, g, scene, { step, rows }) {
  const { palette, trace } = scene
  const position = g.prompt + step
  const column = g.columnOf(position)
  for (let layer = 0; layer < rows; layer++) {
    mark(context, g, trace, layer, column, position + 1, palette.decode, {
      amount: Math.min(1, rows - layer),
      boost: 0.22,
    })
  }
  drawGuessed(context, g, scene, step, rows)
  const layer = Math.min(g.layers - 1, Math.floor(rows))
  const x = g.x(column) + g.pitch / 2
  const tip = g.x(column) + g.pitch * (0.2 + 0.6 * (rows - Math.floor(rows)))
  pencil(context, palette, {
    x: tip,
    y: g.y(layer) + g.row * 0.7,
    height: 2.1 * g.u,
    width: 0.5 * g.u,
    colour: palette.decode,
    lean: 0.42,
  })
  const bus = 1.15 * g.u
  context.strokeStyle = palette.decode
  context.fillStyle = palette.decode
  context.lineWidth = 0.13 * g.u
  context.beginPath()
  context.moveTo(g.width, bus)
  context.lineTo(x + 8, bus)
  context.quadraticCurveTo(x, bus, x, bus + 8)
  context.lineTo(x, g.top - 6)
  context.stroke()
  triangle(context, x, g.top, 0.3 * g.u, 0.5 * g.u)
  font(context, g, g.small ? 0.95 : 1.1, 'italic 700', '"Exam Serif", "Noto Serif", serif')
  context.textAlign = 'right'
  context.textBaseline = 'alphabetic'
  context.fillText(scene.columnText(position), g.width - 0.55 * g.u, bus - 0.3 * g.u, 9 * g.u)
}

/** Guessed tokens get notes in the same step: hollow ones, since those of refused guesses are thrown away. */
function drawGuessed(context, g, { palette, trace }, step, rows) {
  const { drafts } = trace.steps[step]
  if (!drafts?.length) return
  context.strokeStyle = palette.decode
  context.globalAlpha = 0.55
  context.lineWidth = Math.max(0.8, 0.05 * g.u)
  const last = Math.min(g.columns - 1, g.columnOf(g.prompt + step + drafts.length))
  for (let column = g.columnOf(g.prompt + step) + 1; column <= last; column++) {
    for (let layer = 0; layer < Math.floor(rows); layer++)
      context.strokeRect(g.x(column) + 0.2 * g.pitch, g.y(layer) + 0.3 * g.row, 0.6 * g.pitch, Math.max(1, 0.4 * g.row))
  }
  context.globalAlpha = 1
}

/** Layers are counted from 1; the one at work and the one looked with stand out. */
function drawLabels(context, g, scene, moment) {
  const { palette, lens } = scene
  const looked = scene.looks(moment).looks.length ? lens.choice.layer : -1
  const current = moment.reading ? Math.min(g.layers - 1, Math.floor(moment.rows)) : -1
  const every = g.row * 5 > 1.1 * g.u ? 5 : 10
  const x = g.left - 0.4 * g.u
  context.textAlign = 'right'
  context.textBaseline = 'middle'
  const near = (layer, other) => other >= 0 && Math.abs(layer - other) * g.row < 1.05 * g.u
  font(context, g, 0.76)
  context.fillStyle = palette.faint
  for (let layer = 0; layer < g.layers; layer++) {
    const shown = layer === 0 || (layer + 1) % every === 0 || layer === g.layers - 1
    const crowded = (layer !== g.layers - 1 && near(layer, g.layers - 1)) || near(layer, current) || near(layer, looked)
    if (shown && !crowded && !(layer > 0 && near(layer, 0))) context.fillText(layer + 1, x, g.y(layer) + g.row / 2)
  }
  font(context, g, 0.95, '700')
  if (current >= 0) {
    context.fillStyle = palette.prefill
    context.fillText(current + 1, x, g.y(current) + g.row / 2)
  }
  if (looked >= 0) {
    context.fillStyle = palette.markInk
    context.fillText(looked + 1, x, g.y(looked) + g.row / 2)
  }
  context.textBaseline = 'alphabetic'
}

function drawSummary(context, g, scene, { state }) {
  const { palette, words, trace } = scene
  if (!state.chosen) return
  const taken = trace.passes[0]?.taken
  const y = g.top - 0.7 * g.u
  font(context, g, g.small ? 1 : 1.25, '700')
  context.textAlign = 'center'
  context.fillStyle = palette.prefill
  const values = { n: number(state.prompt), time: time(trace.reading), taken: number(trace.reused?.stop ?? 0), rest: number(trace.rest) }
  context.fillText(fill(words.scratch[trace.rest ? 'taken_all' : taken ? 'taken' : 'all'], values), (g.left + g.readEnd) / 2, y)
  if (state.tpot === null) return
  context.textAlign = 'right'
  context.fillStyle = palette.decode
  context.fillText(fill(words.scratch.each, { time: time(state.tpot) }), g.end, y)
}

/** Arcs from the column that looks to the columns it looks at. */
function drawArcs(context, g, scene, moment) {
  const { palette } = scene
  const { row, looks } = scene.looks(moment)
  const big = looks.filter((look) => look.weight >= 0.03 && g.columnOf(look.column) !== g.columnOf(row)).slice(0, 5)
  if (!big.length || (moment.phase === 'end' && scene.view.word < 0)) return
  const x = g.x(g.columnOf(row)) + g.pitch / 2
  context.strokeStyle = palette.markInk
  for (const { weight, column } of [...big].reverse()) {
    const to = g.x(g.columnOf(column)) + g.pitch / 2
    const height = Math.min(g.top - 0.35 * g.u, 0.75 * g.u + (x - to) * 0.16)
    context.globalAlpha = Math.min(1, 0.3 + weight * 1.7)
    context.lineWidth = 1 + weight * 0.3 * g.u
    context.beginPath()
    context.moveTo(x, g.top - 2)
    context.bezierCurveTo(x, g.top - height * 1.3, to, g.top - height * 1.3, to, g.top - 2)
    context.stroke()
  }
  context.globalAlpha = 1
  if (big[0].weight >= 0.1) drawBubble(context, g, scene, big[0])
}

function drawBubble(context, g, scene, { weight, column }) {
  const { palette } = scene
  const label = `${scene.columnText(column)}  ${percent(weight)}`
  font(context, g, g.small ? 0.85 : 1, '700')
  const width = Math.min(14 * g.u, context.measureText(label).width + g.u)
  const height = 1.45 * g.u
  const at = g.x(g.columnOf(column)) + g.pitch / 2
  const x = Math.min(g.width - width / 2 - 2, Math.max(width / 2 + 2, at))
  const y = g.top - height - 0.15 * g.u
  context.fillStyle = palette.markInk
  context.beginPath()
  context.roundRect(x - width / 2, y, width, height, height / 2)
  context.fill()
  triangle(context, at, g.top + 3, 4, 8)
  context.fillStyle = palette.pad
  context.textAlign = 'center'
  context.textBaseline = 'middle'
  context.fillText(label, x, y + height / 2 + 0.03 * g.u, width - 0.6 * g.u)
  context.textBaseline = 'alphabetic'
}

/** In layers with a sliding window, notes that have slid out are not there any more. */
function drawSlid(context, g, { trace, palette }, { state }) {
  const { window, layer_kinds: kinds } = trace.facts
  if (!window || state.columns <= window) return
  const stop = g.columnOf(state.columns - window)
  context.globalAlpha = 0.78
  context.fillStyle = palette.pad
  kinds.forEach((kind, layer) => {
    if (kind === 'sliding') context.fillRect(g.left, g.y(layer) + 1, Math.min(g.x(stop), g.readEnd) - g.left, g.row - 1)
  })
  context.globalAlpha = 1
}
