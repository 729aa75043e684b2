/** All notes in small, as on the exam room's scratch paper: layers × positions, darker a larger K, longer a larger V. */
import { el, fill, setText } from '../../scene/dom.js'
import { mark } from '../../scene/draw/marks.js'
import { drawTorn, runsOf, tears } from '../../scene/draw/torn.js'
import { number } from '../../scene/text.js'
import { lookOf, sized, torn } from './columns.js'
import { firstKept } from '../shared/cost.js'

const NARROW = 4 // pixels of a column that stands for several positions

export class Overview {
  /** `desk`: {words, trace, tokens, columns, choice, label, short, onPlace({layer, position}), length(), done(layer)}. */
  constructor(desk) {
    this.desk = desk
    this.canvas = el('canvas', { tabindex: 0, role: 'img', 'aria-label': desk.words.overview.label, 'data-overview': true })
    this.told = el('p', { class: 'told', 'data-note': true, 'aria-live': 'polite' })
    this.caption = el('p', { class: 'caption', hidden: true })
    this.root = el('div', { class: 'overview' }, this.canvas, this.told, this.caption)
    this.canvas.addEventListener('pointermove', (event) => this.point(this.under(event)))
    this.canvas.addEventListener('pointerleave', () => this.point(null))
    this.canvas.addEventListener('click', (event) => {
      const place = this.under(event)
      if (place) desk.onPlace(place)
    })
    this.canvas.addEventListener('keydown', (event) => this.press(event))
  }

  get rows() {
    return this.desk.trace.layers
  }

  draw() {
    const { desk, canvas } = this
    const { columns, trace, tokens, choice } = desk
    if (!columns.width || !trace.started) return
    const look = lookOf(this.root, desk.short)
    this.top = columns.above
    this.row = columns.unit * Math.max(5, Math.min(14, 250 / this.rows))
    const context = sized(canvas, columns.width, this.top + this.rows * this.row + 4)
    context.lineCap = 'round'
    this.rule(context, look)
    this.marks(context, look)
    columns.axis(context, look, tokens, trace.prompt, this.top, this.top, choice.position)
    this.outline(context, look)
    Object.assign(canvas.dataset, { drawn: desk.length(), top: this.top, row: this.row, from: columns.seen.from, cells: columns.seen.cells })
    this.say()
  }

  /** A line per layer, stronger every five, with its number. */
  rule(context, look) {
    const { columns, choice } = this.desk
    context.fillStyle = look.pad
    context.fillRect(columns.gutter, this.top, columns.plot, this.rows * this.row)
    context.textAlign = 'right'
    context.textBaseline = 'middle'
    for (let layer = 0; layer < this.rows; layer++) {
      const y = this.top + layer * this.row
      const strong = (layer + 1) % 5 === 0 || layer === 0 || layer === this.rows - 1
      context.fillStyle = strong ? look.ruleStrong : look.rule
      context.fillRect(columns.gutter, y + this.row - 0.5, columns.plot, 1)
      const on = layer === choice.layer
      if (!on && !(strong && Math.abs(layer - choice.layer) * this.row > 9)) continue
      context.fillStyle = on ? look.ink : look.faint
      context.font = `${on ? 700 : 400} ${0.74 * look.size}px ${look.font}`
      context.fillText(String(layer + 1), columns.gutter - 7, y + this.row / 2)
    }
  }

  marks(context, look) {
    const { columns, trace } = this.desk
    const { from, cells } = columns.seen
    const bin = Math.max(1, Math.ceil((cells * NARROW) / columns.plot))
    const count = Math.ceil(cells / bin)
    const g = {
      bin, wordBin: bin, prompt: trace.prompt, pitch: columns.step * bin, row: this.row, u: this.row,
      span: (column) => [from + column * bin, Math.min(from + (column + 1) * bin, from + cells)],
      x: (column) => columns.x(from + column * bin), y: (layer) => this.top + layer * this.row,
    }
    this.bin = bin
    for (let layer = 0; layer < this.rows; layer++) {
      const until = this.desk.done(layer)
      const first = firstKept(trace.facts, layer, this.desk.length())
      for (let column = 0; column < count; column++) {
        const [start] = g.span(column)
        const colour = start >= trace.prompt ? look.decode : look.graphite
        mark(context, g, trace, layer, column, until, colour, { alpha: start < first ? 0.3 : 1, boost: start >= trace.prompt ? 0.22 : 0 })
      }
      context.globalAlpha = 1
      if (first > from) torn(context, look, columns.gutter, Math.min(columns.x(first), columns.width), g.y(layer), g.y(layer) + this.row)
    }
    this.tear(context, look, g)
  }

  /** Columns that were let go are torn off all layers, as on the desk in the exam room. */
  tear(context, look, { prompt }) {
    const { columns, trace, now } = this.desk
    const runs = runsOf(trace, tears(trace, now().at))
    this.canvas.dataset.torn = runs.reduce((sum, [start, stop]) => sum + stop - start, 0)
    if (!runs.length) return
    const [left, top, bottom] = [columns.gutter, this.top, this.top + this.rows * this.row]
    const g = { prompt, top, bottom, row: this.row, u: 16 * columns.unit, end: left + columns.plot, edge: (position) => columns.x(position) }
    context.save()
    context.beginPath()
    context.rect(left, top - 1, columns.plot, bottom - top + 3)
    context.clip()
    drawTorn(context, g, look, runs)
    context.globalCompositeOperation = 'destination-over' // what is left of such a column is blank paper
    context.fillStyle = look.pad
    context.fillRect(left, top, columns.plot, bottom - top)
    context.restore()
  }

  outline(context, look) {
    const { columns, choice } = this.desk
    context.strokeStyle = look.decode
    context.lineWidth = 1.5
    context.strokeRect(columns.gutter - 0.5, this.top + choice.layer * this.row - 0.5, columns.plot + 1, this.row + 1)
    const x = columns.x(choice.position)
    if (x < columns.gutter - 1 || x > columns.width) return
    context.strokeRect(x - 0.5, this.top - 1, Math.max(3, columns.step) + 1, this.rows * this.row + 2)
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect()
    const position = this.desk.columns.at(event.clientX - box.left)
    const layer = Math.floor((event.clientY - box.top - this.top) / this.row)
    return position === null || layer < 0 || layer >= this.rows ? null : { layer, position }
  }

  press(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }
    if (!(event.key in moves)) return
    event.preventDefault()
    const { choice, columns, onPlace } = this.desk
    const [down, right] = moves[event.key]
    const inside = (value, most) => Math.max(0, Math.min(most, value))
    onPlace({ layer: inside(choice.layer + down, this.rows - 1), position: inside(choice.position + right, columns.total - 1) })
  }

  point(place) {
    this.place = place
    this.say()
  }

  /** The note pointed at, else the one chosen: its norms, and whether it is still there. */
  say() {
    const { words, trace, choice, label } = this.desk
    const { layer, position } = this.place ?? choice
    if (layer >= this.rows) return
    const length = this.desk.length()
    const known = position < this.desk.done(layer)
    const letGo = trace.gone.get(position) <= this.desk.now().at
    const gone = known && (letGo || position < firstKept(trace.facts, layer, length))
    const key = known ? trace.keys.norm(layer, position) : ''
    const value = known ? trace.values.norm(layer, position) : ''
    Object.assign(this.told.dataset, { layer, position, key, value, gone, first: firstKept(trace.facts, layer, length), columns: length, bin: this.bin ?? 1 })
    const values = { word: label(position), layer: layer + 1, key: known ? number(key, 1) : '', value: known ? number(value, 1) : '' }
    this.caption.hidden = !(this.bin > 1)
    setText(this.caption, fill(words.overview.binned, { n: this.bin }))
    const kind = trace.started?.settings.notes === false ? 'none' : !known ? 'unwritten' : letGo ? 'torn' : gone ? 'gone' : 'note'
    setText(this.told, fill(words.overview[kind], values))
  }
}
