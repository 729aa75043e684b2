/** One KV head's K or V, number by number: positions × head size, blue below zero, orange above. */
import { el, fill, setText } from '../../scene/dom.js'
import { number } from '../../scene/text.js'
import { channels, packed, ramp, spans } from '../shared/heat.js'
import { lookOf, sized, torn } from './columns.js'
import { firstKept } from '../shared/cost.js'

const KNOWN = 8 // heads kept
const HEIGHT = 340 // pixels, about
const FULL = 127

export class Picture {
  /** `desk` as in overview.js, and {api, onCell({position, dimension})}; `choice` has {layer, head, kind, own}. */
  constructor(desk) {
    this.desk = desk
    this.known = new Map()
    const { words } = desk
    this.canvas = el('canvas', { tabindex: 0, role: 'img', 'aria-label': words.picture.label, 'data-picture': true })
    this.told = el('p', { class: 'told', 'data-cell': true, 'aria-live': 'polite' })
    this.legend = el('p', { class: 'caption legend' })
    this.trouble = el('p', { class: 'trouble', role: 'alert', hidden: true, 'data-trouble': true })
    this.root = el('div', { class: 'picture' }, this.trouble, this.canvas, this.told, this.legend)
    this.canvas.addEventListener('pointermove', (event) => this.point(this.under(event)))
    this.canvas.addEventListener('pointerleave', () => this.point(null))
    this.canvas.addEventListener('click', (event) => {
      const cell = this.under(event)
      if (cell) desk.onCell(cell)
    })
    this.canvas.addEventListener('keydown', (event) => this.press(event))
  }

  close() {
    this.closed = true
  }

  get key() {
    const { layer, head, kind } = this.desk.choice
    return `${layer}.${head}.${kind}`
  }

  get notes() {
    return this.known.get(this.key)
  }

  forget() {
    this.known.clear()
  }

  /** Show the chosen layer, head and kind. */
  async show() {
    const { key, desk } = this
    if (!this.known.has(key)) {
      try {
        const notes = await desk.api.notes(desk.choice)
        if (this.closed) return
        this.known.set(key, { ...notes, most: strongest(notes) })
        if (this.known.size > KNOWN) this.known.delete(this.known.keys().next().value)
      } catch (problem) {
        if (!this.closed && key === this.key) this.fail(problem)
        return
      }
    }
    if (key === this.key) this.draw()
  }

  fail({ code, message }) {
    setText(this.trouble, message || this.desk.words.trouble)
    this.trouble.hidden = false
    this.trouble.dataset.code = code ?? ''
    for (const part of [this.canvas, this.told, this.legend]) part.hidden = true
    this.canvas.dataset.drawn = ''
    this.desk.onTrouble(code)
  }

  draw() {
    const { desk, canvas, notes } = this
    const { columns } = desk
    if (!notes || !columns.width) return
    this.trouble.hidden = true
    for (const part of [canvas, this.told, this.legend]) part.hidden = false
    const look = lookOf(this.root, desk.short)
    const ratio = window.devicePixelRatio || 1
    this.line = Math.max(1, Math.round((HEIGHT * columns.unit * ratio) / notes.size)) / ratio
    const height = this.line * notes.size
    this.top = columns.above
    const context = sized(canvas, columns.width, this.top + height + 2)
    columns.axis(context, look, desk.tokens, desk.trace.prompt, this.top, this.top, desk.choice.position)
    this.pixels(context, look, ratio, height)
    context.save()
    context.translate(0, this.top)
    this.grid(context, look, height)
    if (this.first > columns.seen.from) torn(context, look, columns.gutter, Math.min(columns.x(this.first), columns.width), 0, height)
    context.restore()
    Object.assign(canvas.dataset, { drawn: this.key, line: this.line, top: this.top, gutter: columns.gutter, step: columns.step, from: columns.seen.from, own: desk.choice.own })
    this.say()
  }

  pixels(context, look, ratio, height) {
    const { notes, desk } = this
    const { columns, choice } = desk
    const { from, cells } = columns.seen
    const [wide, high] = [Math.round(columns.plot * ratio), Math.round(height * ratio)]
    const picture = context.createImageData(wide, high)
    const out = new Uint32Array(picture.data.buffer)
    const colours = diverging(look)
    const limit = this.limit()
    const blank = packed(channels(look.paper))
    const shown = Math.min(notes.positions, desk.length())
    const across = spans(from, cells, wide)
    const line = Math.round(this.line * ratio)
    for (let dimension = 0; dimension < notes.size; dimension++) {
      const scale = choice.own ? 1 : notes.scales[dimension] / limit
      const row = out.subarray(dimension * line * wide, (dimension * line + 1) * wide)
      for (let x = 0; x < wide; x++) {
        const [start, stop] = across[x]
        row[x] = start >= shown ? blank : colours[FULL + clamp(scale * largest(notes, dimension, start, Math.min(stop, shown)))]
      }
      for (let copy = 1; copy < line; copy++) out.copyWithin((dimension * line + copy) * wide, dimension * line * wide, (dimension * line + 1) * wide)
    }
    context.putImageData(picture, Math.round(columns.gutter * ratio), Math.round(this.top * ratio))
    this.bin = Math.ceil(cells / wide)
  }

  /** The first position that the layer still keeps at this moment. */
  get first() {
    return firstKept(this.desk.trace.facts, this.desk.choice.layer, Math.min(this.notes.positions, this.desk.length()))
  }

  /** The value of full colour; larger ones have it too. */
  limit() {
    return this.notes.most || 1
  }

  grid(context, look, height) {
    const { columns, choice } = this.desk
    const { from, cells } = columns.seen
    if (columns.step >= 8) {
      context.fillStyle = look.paper
      for (let position = from; position <= from + cells; position++) context.fillRect(columns.x(position) - 0.5, 0, 1, height)
    }
    context.fillStyle = look.faint
    context.font = `${0.74 * look.size}px ${look.font}`
    context.textAlign = 'right'
    const { size } = this.notes
    for (const dimension of [1, size / 4, size / 2, (3 * size) / 4, size].map(Math.round)) {
      context.textBaseline = dimension === 1 ? 'top' : dimension === size ? 'bottom' : 'middle'
      context.fillText(String(dimension), columns.gutter - 7, dimension === 1 ? 0 : dimension === size ? height : (dimension - 0.5) * this.line)
    }
    const x = columns.x(choice.position)
    if (x < columns.gutter - 1 || x > columns.width) return
    context.strokeStyle = look.ink
    context.lineWidth = 1.5
    context.strokeRect(x - 0.5, 0.5, Math.max(3, columns.step) + 1, height)
    context.strokeRect(x - 1.5, choice.dimension * this.line - 1.5, Math.max(3, columns.step) + 3, this.line + 3)
  }

  under(event) {
    if (!this.notes) return null
    const box = this.canvas.getBoundingClientRect()
    const position = this.desk.columns.at(event.clientX - box.left)
    const dimension = Math.floor((event.clientY - box.top - this.top) / this.line)
    return position === null || dimension < 0 || dimension >= this.notes.size ? null : { position, dimension }
  }

  press(event) {
    const moves = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }
    if (!(event.key in moves) || !this.notes) return
    event.preventDefault()
    const { choice, columns, onCell } = this.desk
    const [right, down] = moves[event.key]
    const inside = (value, most) => Math.max(0, Math.min(most, value))
    onCell({ position: inside(choice.position + right, columns.total - 1), dimension: inside(choice.dimension + down, this.notes.size - 1) })
  }

  point(cell) {
    this.cell = cell
    this.say()
  }

  /** The number pointed at, else the one chosen, in a sentence and as data. */
  say() {
    const { notes, desk } = this
    if (!notes) return
    const { words, choice, tokens, label } = desk
    const { position, dimension } = this.cell ?? choice
    const here = position < Math.min(notes.positions, desk.length())
    const value = here ? (notes.values[position * notes.size + dimension] / FULL) * notes.scales[dimension] : null
    Object.assign(this.told.dataset, {
      layer: choice.layer, head: choice.head, kind: choice.kind, position, dimension, value: value ?? '', id: tokens[position]?.id ?? '',
      positions: notes.positions, size: notes.size, first: this.first, source: notes.source, limit: this.limit(), bin: this.bin,
    })
    const names = { word: label(position), kind: words.kind_letter[choice.kind], dimension: dimension + 1, layer: choice.layer + 1, head: choice.head + 1 }
    setText(this.told, fill(here ? words.picture.cell : words.overview.unwritten, { ...names, value: here ? signed(value) : '' }))
    this.legend.replaceChildren(
      el('i', { class: 'scale', 'aria-hidden': 'true' }), ' ',
      [
        choice.own ? words.picture.own_scale : fill(words.picture.scale, { most: number(this.limit(), 2) }),
        this.bin > 1 ? fill(words.picture.pooled, { n: this.bin }) : '',
        this.first > 0 ? fill(words.picture.slid, { n: number(this.first) }) : '',
      ].filter(Boolean).join(' '))
  }
}

export const signed = (value) => `${value < 0 ? '−' : ''}${number(Math.abs(value), Math.abs(value) < 10 ? 3 : 1)}`

const clamp = (value) => Math.max(-FULL, Math.min(FULL, Math.round(value)))

/** The number of largest size among positions [start, stop) of one dimension. */
function largest({ values, size }, dimension, start, stop) {
  let found = 0
  for (let position = start; position < stop; position++) {
    const value = values[position * size + dimension]
    if (Math.abs(value) > Math.abs(found)) found = value
  }
  return found
}

/** What 19 of 20 numbers do not exceed in size: few dimensions hold the largest, and all others would be pale. */
function strongest({ values, scales, size }) {
  const every = Math.floor(values.length / 200_000) | 1 // odd: every dimension has its turn
  const sizes = new Float32Array(Math.ceil(values.length / every))
  for (let at = 0, index = 0; at < values.length; at += every) sizes[index++] = (Math.abs(values[at]) / FULL) * scales[at % size]
  sizes.sort()
  return sizes[Math.floor(0.95 * (sizes.length - 1))]
}

/** 255 colours: −127 … 127. */
function diverging(look) {
  const middle = channels(look.pad)
  const below = ramp(middle, channels(look.decode))
  const above = ramp(middle, channels(look.prefill))
  const strength = (index) => Math.round((255 * Math.abs(index - FULL)) / FULL)
  return Uint32Array.from({ length: 2 * FULL + 1 }, (_, index) => (index < FULL ? below : above)[strength(index)])
}
