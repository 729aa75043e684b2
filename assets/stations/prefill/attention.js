/**
 * The attention explorer: one head's map on a canvas, fetched once per head as bytes, drawn at any zoom from there.
 * Neither the model nor the page runs again when a layer or head is chosen: an answer that is known is drawn at once.
 *
 * Positions count from 0 in here and from 1 in what people read.
 */
import { button, el, fill } from '../../scene/dom.js'
import { percent } from '../../scene/text.js'
import { channels, maxima, packed, paint, ramp, ticks } from '../shared/heat.js'

const LEAST = 6 // cells along a side when nearest
const KNOWN = 6 // maps kept; one of 4,096 tokens takes 16 MB
const LABELS = 15 // pixels a cell must have for its token to stand beside it

export class Explorer {
  /**
   * `desk`: {words, api, onCell(row, column), label(position), short(position)}; `desk.choice` is
   * {layer, head (null: the layer's mean), row, column, hideSink, stretch}.
   */
  constructor(desk) {
    this.desk = desk
    this.maps = new Map()
    this.view = null
    this.cell = null
    this.canvas = el('canvas', { tabindex: 0, role: 'img', 'aria-label': desk.words.map.label })
    this.told = el('p', { class: 'told', 'data-attention': true, 'aria-live': 'polite' })
    this.caption = el('p', { class: 'caption' })
    this.trouble = el('p', { class: 'trouble', role: 'alert', hidden: true })
    const tool = (name, work, sign) => button(sign, work, { title: desk.words.map[name], 'aria-label': desk.words.map[name], 'data-do': name })
    const tools = el('div', { class: 'tools' },
      tool('nearer', () => this.zoom(0.5), '+'), tool('farther', () => this.zoom(2), '−'), tool('fit', () => this.fit(), '⤢'))
    this.root = el('div', { class: 'explorer' }, el('div', { class: 'frame' }, this.canvas, tools), this.told, this.caption, this.trouble)
    this.listen()
    this.sizes = new ResizeObserver(() => this.draw())
    this.sizes.observe(this.root)
  }

  close() {
    this.closed = true
    this.sizes.disconnect()
  }

  get key() {
    const { layer, head } = this.desk.choice
    return `${layer}.${head ?? 'mean'}`
  }

  get map() {
    return this.maps.get(this.key)
  }

  /** Show the chosen layer and head. */
  async show() {
    const { key } = this
    if (!this.maps.has(key)) {
      try {
        const map = await this.desk.api.map(this.desk.choice)
        if (this.closed) return
        this.maps.set(key, map)
        if (this.maps.size > KNOWN) this.maps.delete(this.maps.keys().next().value)
      } catch (problem) {
        if (!this.closed && key === this.key) this.fail(problem)
        return
      }
    }
    if (key !== this.key) return
    this.trouble.hidden = true
    this.draw()
  }

  fail(problem) {
    this.trouble.textContent = problem.message || this.desk.words.trouble
    this.trouble.hidden = false
    this.trouble.dataset.code = problem.code ?? ''
    this.canvas.dataset.drawn = ''
    this.told.removeAttribute('data-source')
    this.canvas.getContext('2d').clearRect(0, 0, this.canvas.width, this.canvas.height)
  }

  get cells() {
    return this.map.first + this.map.rows
  }

  fit() {
    this.view = null
    this.draw()
  }

  /** Show `factor` as many cells, the one under `at` ([0…1, 0…1] of the plot) staying where it is. */
  zoom(factor, at = [0.5, 0.5]) {
    if (!this.map) return
    const { x, y, cells } = this.seen()
    const next = Math.min(this.cells, Math.max(Math.min(LEAST, this.cells), cells * factor))
    this.place(x + at[0] * (cells - next), y + at[1] * (cells - next), next)
  }

  place(x, y, cells) {
    const inside = (from) => Math.min(Math.max(0, from), Math.max(0, this.cells - cells))
    this.view = { x: inside(x), y: inside(y), cells }
    this.draw()
  }

  seen() {
    if (this.view && this.view.cells <= this.cells) return this.view
    return { x: 0, y: 0, cells: this.cells }
  }

  /** Bring a cell into the picture, without changing more than is needed. */
  reveal(row, column) {
    if (!this.map || !this.view) return
    const { x, y, cells } = this.view
    const moved = (from, at) => (at < from ? at : at >= from + cells ? at - cells + 1 : from)
    this.place(moved(x, column), moved(y, row), cells)
  }

  draw() {
    const { map, canvas } = this
    const width = this.root.clientWidth
    if (!map || !width) return
    const begun = performance.now()
    const ratio = window.devicePixelRatio || 1
    const gutter = this.gutter()
    const side = Math.round(Math.min(width - gutter, Math.max(260, window.innerHeight * 0.78)) * ratio)
    const margin = Math.round(gutter * ratio)
    if (canvas.width !== side + margin) canvas.width = canvas.height = side + margin
    canvas.style.width = canvas.style.height = `${(side + margin) / ratio}px`
    this.shape = { side, margin, ratio }
    const context = canvas.getContext('2d')
    const look = this.look()
    context.fillStyle = look.background
    context.fillRect(0, 0, canvas.width, canvas.height)
    const picture = context.createImageData(side, side)
    paint(new Uint32Array(picture.data.buffer), side, map, this.seen(), look, this.options())
    context.putImageData(picture, margin, margin)
    this.axes(context, look)
    canvas.dataset.margin = margin
    canvas.dataset.drawn = this.key
    canvas.dataset.ms = (performance.now() - begun).toFixed(1)
    this.say()
  }

  options() {
    const { hideSink, stretch } = this.desk.choice
    const { map } = this
    const name = hideSink ? 'mostHidden' : 'most'
    if (stretch) map[name] ??= maxima(map, hideSink)
    return { hideSink, most: stretch ? map[name] : null }
  }

  look() {
    const style = getComputedStyle(this.root)
    const colour = (name) => style.getPropertyValue(name).trim()
    const sheet = channels(colour('--sheet'))
    return {
      ramp: ramp(channels(colour('--low')), channels(colour('--high'))),
      ahead: packed(sheet),
      beyond: packed(channels(colour('--desk'))),
      hidden: packed(channels(colour('--edge'))),
      background: colour('--sheet'),
      ink: colour('--ink'),
      faint: colour('--pencil'),
      mark: colour('--accent'),
      font: style.fontFamily,
      size: parseFloat(style.fontSize),
    }
  }

  /** Pixels beside the plot: for numbers, or for words when they are near enough to be read. */
  gutter() {
    const near = this.map && (Math.min(this.root.clientWidth, window.innerHeight * 0.78) - 90) / this.seen().cells >= LABELS
    return near ? Math.min(96, this.root.clientWidth * 0.24) : 40
  }

  axes(context, look) {
    const { side, margin, ratio } = this.shape
    const { x, y, cells } = this.seen()
    const step = side / cells
    const named = step / ratio >= LABELS
    const shown = named ? Math.ceil(cells) + 1 : side / ratio / 46
    const text = (position) => (named ? `${this.desk.short(position - 1)} ${position}` : String(position))
    context.font = `${0.7 * look.size * ratio}px ${look.font}`
    context.fillStyle = look.faint
    context.textBaseline = 'middle'
    context.textAlign = 'right'
    const last = Math.min(this.cells, Math.ceil(y + cells))
    this.rowTicks = ticks(Math.floor(y), last, shown)
    for (const position of this.rowTicks) {
      const at = margin + (position - 0.5 - y) * step
      if (at >= margin && at <= margin + side) context.fillText(text(position), margin - 4 * ratio, at, margin - 6 * ratio)
    }
    const end = Math.min(this.cells, Math.ceil(x + cells))
    this.columnTicks = ticks(Math.floor(x), end, shown)
    for (const position of this.columnTicks) {
      const at = margin + (position - 0.5 - x) * step
      if (at < margin || at > margin + side) continue
      context.save()
      context.translate(at, margin - 4 * ratio)
      if (named) context.rotate(-Math.PI / 2)
      context.textAlign = named ? 'left' : 'center'
      context.fillText(text(position), 0, named ? 0 : -7 * ratio, named ? margin - 6 * ratio : undefined)
      context.restore()
    }
    this.outline(context, look, step)
  }

  /** The chosen row, and the chosen cell in it. */
  outline(context, look, step) {
    const { margin, side, ratio } = this.shape
    const { x, y } = this.seen()
    const { row, column } = this.desk.choice
    context.save()
    context.beginPath()
    context.rect(margin, margin, side, side)
    context.clip()
    context.strokeStyle = look.mark
    context.lineWidth = ratio
    const box = (left, top, width, height) => context.strokeRect(left - ratio / 2, top - ratio / 2, width + ratio, height + ratio)
    if (row !== null) box(margin - x * step, margin + (row - y) * step, (row + 1) * step, Math.max(step, ratio))
    context.lineWidth = 2 * ratio
    if (row !== null && column !== null) box(margin + (column - x) * step, margin + (row - y) * step, Math.max(step, 3 * ratio), Math.max(step, 3 * ratio))
    context.restore()
  }

  /** The cell under a pointer, or null outside the triangle. */
  under(event) {
    if (!this.map || !this.shape) return null
    const { margin, side, ratio } = this.shape
    const box = this.canvas.getBoundingClientRect()
    const { x, y, cells } = this.seen()
    const across = ((event.clientX - box.left) * ratio - margin) / side
    const down = ((event.clientY - box.top) * ratio - margin) / side
    if (across < 0 || down < 0 || across >= 1 || down >= 1) return null
    const [row, column] = [Math.floor(y + down * cells), Math.floor(x + across * cells)]
    return row < this.cells && column < this.cells ? { row, column, at: [across, down] } : null
  }

  weight(row, column) {
    const { map } = this
    if (!map || row < map.first || row >= this.cells || column > row) return null
    return map.data[(row - map.first) * map.columns + column] / 255
  }

  listen() {
    const { canvas } = this
    let from = null
    canvas.addEventListener('pointerdown', (event) => {
      from = { x: event.clientX, y: event.clientY, view: this.map && this.seen(), moved: false }
      canvas.setPointerCapture(event.pointerId)
    })
    canvas.addEventListener('pointermove', (event) => {
      if (from?.view) this.drag(event, from)
      if (!from?.moved) this.point(this.under(event))
    })
    canvas.addEventListener('pointerup', (event) => {
      const cell = !from?.moved && this.under(event)
      from = null
      if (cell && cell.column <= cell.row) this.desk.onCell(cell.row, cell.column)
    })
    canvas.addEventListener('pointercancel', () => { from = null })
    canvas.addEventListener('pointerleave', () => this.point(null))
    canvas.addEventListener('dblclick', () => this.fit())
    canvas.addEventListener('wheel', (event) => {
      const cell = this.under(event)
      if (!cell || !(event.ctrlKey || canvas.matches(':focus'))) return // else the wheel is the page's
      event.preventDefault()
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, cell.at)
    }, { passive: false })
    canvas.addEventListener('keydown', (event) => this.press(event))
  }

  drag(event, from) {
    const [right, down] = [event.clientX - from.x, event.clientY - from.y]
    if (!from.moved && Math.hypot(right, down) < 4) return
    from.moved = true
    const perPixel = (from.view.cells * this.shape.ratio) / this.shape.side
    this.place(from.view.x - right * perPixel, from.view.y - down * perPixel, from.view.cells)
  }

  press(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }
    const acts = { '+': () => this.zoom(0.5), '=': () => this.zoom(0.5), '-': () => this.zoom(2), 0: () => this.fit() }
    if (!this.map || !(event.key in moves || event.key in acts)) return
    event.preventDefault()
    if (event.key in acts) return acts[event.key]()
    const { row, column } = this.desk.choice
    const next = Math.min(this.cells - 1, Math.max(0, (row ?? this.cells - 1) + moves[event.key][0]))
    this.desk.onCell(next, Math.min(next, Math.max(0, (column ?? 0) + moves[event.key][1])))
  }

  point(cell) {
    this.cell = cell
    this.say()
  }

  /** The cell pointed at, else the one chosen, in a sentence and as data. */
  say() {
    const { words, choice, label } = this.desk
    const { map, told } = this
    if (!map) return
    const row = this.cell?.row ?? choice.row
    const column = this.cell?.column ?? choice.column
    const weight = row === null || column === null ? null : this.weight(row, column)
    Object.assign(told.dataset, {
      layer: choice.layer, head: choice.head ?? 'mean', source: map.source, first: map.first, rows: map.rows,
      columns: map.columns, row: row ?? '', column: column ?? '', weight: weight ?? '', stretch: choice.stretch, sink: !choice.hideSink,
      ticks: (this.rowTicks ?? []).join(' '), x: this.seen().x, y: this.seen().y, cells: this.seen().cells,
    })
    if (row === null || column === null) told.textContent = words.map.point
    else if (column > row) told.textContent = fill(words.map.ahead, { row: label(row), column: label(column) })
    else if (weight === null) told.textContent = fill(words.map.unknown, { row: label(row) })
    else told.textContent = fill(words.map.cell, { row: label(row), column: label(column), weight: percent(weight) })
    const spread = this.shape ? Math.ceil(this.seen().cells / this.shape.side) : 1
    this.caption.textContent = [
      choice.stretch ? words.map.stretched : words.map.plain,
      spread > 1 ? fill(words.map.pooled, { n: spread }) : '',
      map.source === 'recorded' ? words.map.recorded : '',
    ].filter(Boolean).join(' ')
  }
}
