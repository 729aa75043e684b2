/**
 * The tiles at work: the matrix that is never written as a ghost, the tile at hand on it, and beside each row its running
 * maximum m, its running sum l and its output so far. Played, stepped, scrubbed.
 *
 * [data-tiles] tells the moment: data-step, data-of, data-row, data-column, data-word, data-m, data-l (the row it speaks of).
 */
import { button, el, fill, setText, tag } from '../../scene/dom.js'
import { bytes, number } from '../../scene/text.js'
import { paletteOf } from '../../scene/theme.js'
import { channels } from '../shared/heat.js'
import { ghost, headKept, headOf, Walk } from './tiles.js'

const RECORDED = new URL('../recorded/head.json', import.meta.url)
const SIDES = [4, 8, 16, 32, 64, 128, 256]
const FEWEST = 3 // tiles along a side, so that there is something to step through
const PACE = 9 // seconds that playing takes, whatever the number of tiles
const GHOST = 512 // positions up to which the ghost shows its weights

export class TilesView {
  /** `lab`: the page; `onHead(head, walk)` hears of the numbers on show. */
  constructor(lab, onHead) {
    Object.assign(this, { lab, onHead })
    const words = lab.words.tiles
    this.canvas = el('canvas', { role: 'img', 'aria-label': words.picture })
    this.frame = el('div', { class: 'tiles-frame' }, this.canvas)
    this.layer = el('select', { 'data-do': 'layer', onchange: () => this.load() })
    this.head = el('select', { 'data-do': 'head', onchange: () => this.load() })
    this.side = el('select', { 'data-do': 'side', onchange: () => this.begin(+this.side.value) })
    this.play = button(words.play, () => this.toggle(), { class: 'pill main', 'data-do': 'play' })
    this.scrub = el('input', { type: 'range', min: 0, max: 1, value: 0, 'aria-label': words.scrub, 'data-do': 'scrub', oninput: () => this.go(+this.scrub.value) })
    this.told = el('p', { class: 'told', 'data-tiles': '', 'data-step': '' })
    this.sizes = el('p', { class: 'hint' })
    this.controls = el('div', { class: 'row' },
      this.play, button(words.back, () => this.go(this.walk.step - 1), { class: 'pill', 'data-do': 'back' }),
      button(words.step, () => this.go(this.walk.step + 1), { class: 'pill', 'data-do': 'step' }), this.scrub,
      el('label', {}, words.side, this.side), el('label', {}, words.layer, this.layer), el('label', {}, words.head, this.head))
    this.absent = el('p', { class: 'hint', 'data-absent': '' })
    this.ledger = el('table', { class: 'ledger' })
    this.drawing = el('div', { hidden: true }, this.controls,
      el('div', { class: 'tiles-desk' }, this.frame, el('div', { class: 'aside' }, this.told, this.ledger, el('p', { class: 'hint' }, words.rule), this.sizes)))
    this.root = el('div', {}, this.drawing, this.absent)
  }

  show() {
    const { lab } = this
    if (!lab.facts || this.run === lab.options.run) return
    this.run = lab.options.run
    if (!lab.held) {
      this.recorded()
      return
    }
    const { layers, heads } = lab.facts
    const lens = lab.summary?.lens
    const list = (select, count, chosen) => {
      select.replaceChildren(...Array.from({ length: count }, (_, i) => el('option', { value: i }, String(i + 1))))
      select.value = chosen
    }
    list(this.layer, layers, lens?.layer ?? Math.floor(layers / 2))
    list(this.head, heads, lens?.head ?? 0)
    this.load()
  }

  /** A recorded head, where this run's own numbers are not held. */
  async recorded() {
    const { lab } = this
    try {
      const kept = await (await fetch(RECORDED)).json()
      const [day] = kept.created.split('T')
      this.absent.replaceChildren(`${lab.words.tiles.absent} `, fill(lab.words.tiles.recorded, { layer: kept.layer + 1, head: kept.head + 1, model: kept.model, machine: kept.machine, day }), ' ', tag(lab.scene, 'recorded'))
      this.layer.parentElement.hidden = this.head.parentElement.hidden = true
      Object.assign(this.told.dataset, { recorded: kept.run })
      this.numbers = headKept(kept)
    } catch {
      return setText(this.absent, lab.words.tiles.absent)
    }
    this.ready()
    return undefined
  }

  async load() {
    const { lab } = this
    this.pause()
    try {
      this.numbers = headOf(await lab.api.bytes(`/qkv?layer=${this.layer.value}&head=${this.head.value}`))
    } catch (problem) {
      this.drawing.hidden = true
      return setText(this.absent, lab.station.sentence(problem))
    }
    setText(this.absent, '')
    this.ready()
    return undefined
  }

  ready() {
    this.drawing.hidden = false
    const { n } = this.numbers
    this.weights = n <= GHOST ? ghost(this.numbers) : null
    const fitting = SIDES.filter((side) => side === SIDES[0] || n / side >= FEWEST)
    this.side.replaceChildren(...fitting.map((side) => el('option', { value: side }, `${side} × ${side}`)))
    const usual = fitting.findLast((side) => n / side >= 5) ?? fitting[0]
    this.side.value = usual
    this.begin(usual)
  }

  begin(side) {
    this.pause()
    this.walk = new Walk(this.numbers, side)
    this.scrub.max = this.walk.tiles.length
    this.sized()
    const whole = new Walk(this.numbers, side)
    whole.to(whole.tiles.length)
    this.onHead(this.numbers, whole)
    this.ranges(whole)
    this.go(this.telling(side))
  }

  /** The first tile that brings a row a larger score: there the trick is seen. */
  telling(side) {
    const walk = new Walk(this.numbers, side)
    while (!walk.over) {
      walk.next()
      if (walk.told?.grew) return walk.step
    }
    return Math.min(2, walk.step)
  }

  /** To what scale m and l are drawn: the whole walk's. */
  ranges({ largest, total, output }) {
    const finite = Array.from(largest).filter(Number.isFinite)
    this.scale = { low: Math.min(...finite), high: Math.max(...finite), sum: Math.max(...total), out: Math.max(...output.map(Math.abs)) }
  }

  /** What is at hand against what would have to be written, in fp32. */
  sized() {
    const { n, size } = this.numbers
    const { side } = this.walk
    const hand = 4 * (4 * side * size + side * side + 2 * side)
    this.sizes.replaceChildren(fill(this.lab.words.tiles.sizes, { hand: bytes(hand), matrix: bytes(4 * n * n), n: number(n), side }), ' ', tag(this.lab.scene, 'computed', true))
    Object.assign(this.sizes.dataset, { hand, matrix: 4 * n * n })
  }

  toggle() {
    if (this.timer) return this.pause()
    if (this.walk.over) this.walk.reset()
    setText(this.play, this.lab.words.tiles.pause)
    const total = this.walk.tiles.length
    const pause = Math.max(40, Math.min(900, (1000 * PACE) / total))
    const jump = Math.max(1, Math.round((total * pause) / (1000 * PACE)))
    this.timer = setInterval(() => {
      this.go(this.walk.step + jump, true)
      if (this.walk.over) this.pause()
    }, pause)
    return undefined
  }

  pause() {
    clearInterval(this.timer)
    this.timer = null
    setText(this.play, this.lab.words.tiles.play)
  }

  go(step, playing = false) {
    if (!playing) this.pause()
    this.walk.to(Math.max(1, Math.min(this.walk.tiles.length, step)))
    this.scrub.value = this.walk.step
    this.tell()
    this.draw()
  }

  tell() {
    const { walk } = this
    const words = this.lab.words.tiles
    const { tile, told } = walk
    const three = (value) => (Number.isFinite(value) ? number(value, 3) : '−∞')
    Object.assign(this.told.dataset, { step: walk.step, of: walk.tiles.length, row: tile.row, column: tile.column, m: told.m, l: told.l, word: told.row })
    const values = { step: number(walk.step), of: number(walk.tiles.length), from: tile.row + 1, to: tile.rowStop, first: tile.column + 1, last: tile.columnStop,
      row: told.row + 1, m0: three(told.before.m), m: three(told.m), l0: three(told.before.l), l: three(told.l), scaled: three(told.scaled) }
    const how = told.before.m === -Infinity ? 'begins' : told.grew ? 'grows' : 'stays'
    setText(this.told, `${fill(words.told, values)} ${fill(words[how], values)}`)
    const row = (name, before, now) => el('tr', {}, el('th', { scope: 'row' }, words.ledger[name]), el('td', {}, before), el('td', {}, el('b', {}, now)))
    this.ledger.replaceChildren(
      el('thead', {}, el('tr', {}, el('th', {}, fill(words.ledger.row, values)), el('th', { scope: 'col' }, words.ledger.before), el('th', { scope: 'col' }, words.ledger.after))),
      el('tbody', {}, row('m', values.m0, values.m), row('scaled', '', how === 'begins' ? '–' : `× ${values.scaled}`), row('l', values.l0, values.l)))
  }

  resize() {
    if (this.walk) this.draw()
  }

  close() {
    this.pause()
  }

  draw() {
    const wide = this.frame.clientWidth
    if (!wide) return
    const u = parseFloat(getComputedStyle(this.frame).fontSize)
    const ink = paletteOf(this.lab.station.root)
    const { n } = this.numbers
    const beside = Math.min(18 * u, wide * 0.4)
    const square = Math.floor(Math.min(wide - beside - 3.2 * u, 32 * u))
    const place = { left: 1.6 * u, top: 3.1 * u, square, cell: square / n, u, beside: { x: 1.6 * u + square + 1.2 * u, width: beside - u } }
    const high = place.top + square + 0.6 * u
    const ratio = devicePixelRatio || 1
    Object.assign(this.canvas, { width: Math.round(wide * ratio), height: Math.round(high * ratio) })
    Object.assign(this.canvas.style, { width: `${wide}px`, height: `${high}px` })
    const pen = this.canvas.getContext('2d')
    pen.scale(ratio, ratio)
    pen.font = `${0.8 * u}px ${getComputedStyle(this.frame).fontFamily}`
    this.matrix(pen, place, ink)
    this.tileAt(pen, place, ink)
    this.rows(pen, place, ink)
    this.canvas.dataset.drawn = `${this.walk.step}/${this.walk.side}`
  }

  /** The ghost: all weights faintly, tiles done washed over, tiles above the diagonal left empty. */
  matrix(pen, { left, top, square, cell }, ink) {
    const { walk, numbers, weights } = this
    const { n } = numbers
    pen.fillStyle = ink.pad
    pen.fillRect(left, top, square, square)
    if (weights) {
      const image = new ImageData(n, n)
      const [r, g, b] = channels(ink.pencil)
      weights.forEach((weight, at) => image.data.set([r, g, b, Math.round(110 * Math.sqrt(weight))], 4 * at))
      const small = Object.assign(document.createElement('canvas'), { width: n, height: n })
      small.getContext('2d').putImageData(image, 0, 0)
      pen.imageSmoothingEnabled = false
      pen.drawImage(small, left, top, square, square)
    }
    walk.tiles.forEach(({ row, rowStop, column, columnStop }, i) => {
      const box = [left + column * cell, top + row * cell, (columnStop - column) * cell, (rowStop - row) * cell]
      if (i < walk.step - 1) {
        pen.globalAlpha = 0.55
        pen.fillStyle = ink.prefillWash
        pen.fillRect(...box)
        pen.globalAlpha = 1
      }
      pen.strokeStyle = ink.ghost
      pen.lineWidth = 1
      if (box[2] > 5) {
        pen.setLineDash([3, 3])
        pen.strokeRect(...box)
        pen.setLineDash([])
      }
    })
    pen.strokeStyle = ink.edge
    pen.strokeRect(left, top, square, square)
  }

  /** The tile at hand with its own weights, and which queries and keys are at hand for it. */
  tileAt(pen, { left, top, square, cell, u }, ink) {
    const { walk } = this
    const words = this.lab.words.tiles
    const { row, rowStop, column, columnStop } = walk.tile
    const wide = columnStop - column
    pen.fillStyle = ink.paper
    pen.fillRect(left + column * cell, top + row * cell, wide * cell, (rowStop - row) * cell)
    pen.fillStyle = ink.prefill
    walk.weights.forEach((weight, at) => {
      if (!weight) return
      pen.globalAlpha = Math.min(1, 0.12 + 0.88 * Math.sqrt(weight))
      pen.fillRect(left + (column + (at % wide)) * cell, top + (row + Math.floor(at / wide)) * cell, Math.max(0.6, cell * 0.92), Math.max(0.6, cell * 0.92))
    })
    pen.globalAlpha = 1
    pen.strokeStyle = ink.prefill
    pen.lineWidth = 2.5
    pen.strokeRect(left + column * cell, top + row * cell, wide * cell, (rowStop - row) * cell)
    pen.fillStyle = ink.edge
    pen.fillRect(left, top - 0.75 * u, square, 0.5 * u)
    pen.fillRect(left - 0.75 * u, top, 0.5 * u, square)
    pen.fillStyle = ink.decode
    pen.fillRect(left + column * cell, top - 0.75 * u, wide * cell, 0.5 * u)
    pen.fillStyle = ink.prefill
    pen.fillRect(left - 0.75 * u, top + row * cell, 0.5 * u, (rowStop - row) * cell)
    pen.textBaseline = 'alphabetic'
    pen.textAlign = 'left'
    pen.fillStyle = ink.decode
    pen.fillText(words.keys, left, top - 1.05 * u)
    pen.fillStyle = ink.prefill
    pen.fillText(words.queries, 0, top - 1.95 * u)
  }

  /** Beside each row: m, l and the output so far. */
  rows(pen, { top, square, cell, u, beside }, ink) {
    const { walk, numbers, scale } = this
    const words = this.lab.words.tiles
    const gap = 0.7 * u
    const bar = beside.width * 0.2
    const places = [beside.x, beside.x + bar + gap, beside.x + 2 * (bar + gap)]
    const wide = beside.width - 2 * (bar + gap)
    pen.fillStyle = ink.ink
    pen.textAlign = 'left'
    ;[words.m, words.l, words.output].forEach((text, i) => pen.fillText(text, places[i], top - 0.6 * u))
    pen.fillStyle = ink.pad
    ;[bar, bar, wide].forEach((width, i) => pen.fillRect(places[i], top, width, square))
    const high = Math.max(0.7, cell * 0.86)
    const [plus, minus] = [ink.decode, ink.stop]
    const { tile } = walk
    for (let row = 0; row < tile.rowStop; row++) {
      if (walk.largest[row] === -Infinity) continue
      const now = row >= tile.row
      const y = top + row * cell
      pen.globalAlpha = now ? 1 : 0.45
      pen.fillStyle = now ? ink.prefill : ink.pencil
      pen.fillRect(places[0], y, Math.max(1, (bar * (walk.largest[row] - scale.low)) / (scale.high - scale.low || 1)), high)
      pen.fillRect(places[1], y, Math.max(1, (bar * walk.total[row]) / scale.sum), high)
      const step = wide / numbers.size
      for (let j = 0; j < numbers.size; j++) {
        const value = walk.output[row * numbers.size + j] / scale.out
        pen.globalAlpha = Math.min(1, Math.sqrt(Math.abs(value))) * (now ? 1 : 0.6)
        pen.fillStyle = value < 0 ? minus : plus
        pen.fillRect(places[2] + j * step, y, step, high)
      }
    }
    pen.globalAlpha = 1
    pen.strokeStyle = ink.prefill
    pen.lineWidth = 1.5
    pen.strokeRect(beside.x - 3, top + tile.row * cell, beside.width + 3, (tile.rowStop - tile.row) * cell)
  }
}
