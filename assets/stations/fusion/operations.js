/**
 * One layer's norm and MLP as rows of operations, stepped through: each a box with the bytes it reads from memory and
 * writes to it, all to one scale. Operations that became one are one wide box, so a row gets shorter in boxes and its bars
 * shrink; what is drawn was noted of the real operations (`engine/labs/traffic.py`, inductor's own account for compiled).
 *
 * The root is [data-operations] with data-rows, data-step, data-of and data-way; [data-lane=WAY] has data-kernels (of the
 * profile) and data-steps, and each [data-operation] its data-bytes.
 */
import { button, el, fill, setText, tag } from '../../scene/dom.js'
import { bytes, number } from '../../scene/text.js'

const PACE = 900 // milliseconds an operation is shown
const HIGH = 4.6 // a bar's most, in letters

export class Operations {
  constructor(lab) {
    this.lab = lab
    this.step = -1
    const w = lab.words.operations
    this.none = el('p', { class: 'hint' }, lab.common.unmeasured)
    this.choose = el('div', { class: 'row choose', role: 'group', 'aria-label': w.rows })
    this.toggle = button(w.play, () => this.play(), { class: 'pill main', 'data-do': 'play' })
    this.scrub = el('input', { type: 'range', min: 0, value: 0, 'aria-label': w.scrub, 'data-do': 'scrub', oninput: () => this.to(+this.scrub.value - 1) })
    const moves = el('div', { class: 'row' }, this.toggle, button('‹', () => this.to(this.step - 1), { class: 'pill', 'data-do': 'back', 'aria-label': w.back }),
      button('›', () => this.to(this.step + 1), { class: 'pill', 'data-do': 'step', 'aria-label': w.step }), this.scrub)
    this.says = el('p', { class: 'told', 'aria-live': 'polite' })
    this.lanes = el('div', { class: 'way-rows' })
    this.key = el('p', { class: 'key' }, ...['weights', 'reads', 'writes'].map((kind) => el('span', {}, el('i', { class: kind }), w.key[kind])))
    this.whole = el('div', {}, this.choose, moves, this.says, this.lanes, this.key)
    this.root = el('div', { 'data-operations': '' }, el('link', { rel: 'stylesheet', href: new URL('fusion.css', import.meta.url).href }), this.none, this.whole)
  }

  /** A layer's ways whose operations are known, each with whose they are. */
  get ways() {
    const layer = this.lab.layers.find(({ rows }) => rows === this.rows) ?? this.lab.layers[0]
    return layer ? Object.entries(layer.ways).filter(([, way]) => way.steps) : []
  }

  /** Every operation in the order in which it is stepped through: `[way, place]`. */
  get path() {
    return this.ways.flatMap(([name, { steps }]) => steps.map((_, place) => [name, place]))
  }

  show() {
    const { lab } = this
    const { layers } = lab
    this.none.hidden = layers.length > 0
    this.whole.hidden = !layers.length
    if (!layers.length) return
    if (!layers.some(({ rows }) => rows === this.rows)) this.rows = layers[0].rows
    this.choose.replaceChildren(...layers.map(({ rows }) => button(fill(lab.words.rows[rows === 1 ? 'one' : 'many'], { n: number(rows) }), () => this.look(rows), { class: rows === this.rows ? 'pill chosen' : 'pill', 'data-rows': rows, 'aria-pressed': String(rows === this.rows) })))
    this.draw()
    this.to(Math.min(this.step, this.path.length - 1), Boolean(this.timer))
  }

  close() {
    clearTimeout(this.timer)
  }

  look(rows) {
    this.halt()
    this.rows = rows
    this.step = -1
    this.show()
  }

  play() {
    if (this.timer) return this.halt()
    if (this.step === this.path.length - 1) this.to(-1)
    setText(this.toggle, this.lab.words.operations.pause)
    const on = () => {
      if (this.step === this.path.length - 1) return this.halt()
      this.to(this.step + 1, true)
      this.timer = setTimeout(on, PACE)
      return undefined
    }
    this.timer = setTimeout(on, PACE / 3)
    return undefined
  }

  halt() {
    clearTimeout(this.timer)
    this.timer = null
    setText(this.toggle, this.lab.words.operations.play)
  }

  draw() {
    const { ways } = this
    const all = ways.flatMap(([, { steps }]) => steps)
    const most = Math.max(1, ...all.map(({ weights, reads, writes }) => Math.max(weights + reads, writes)))
    this.boxes = {}
    this.lanes.replaceChildren(...ways.map(([name, way]) => this.lane(name, way, most)))
  }

  lane(name, way, most) {
    const { lab } = this
    const { words, scene } = lab
    const { lanes } = words.operations
    this.boxes[name] = way.steps.map((step, place) => this.box(step, name, place, most))
    const values = { kernels: way.kernels, calls: way.calls, memory: bytes(way.memory), weights: bytes(way.weights) }
    const whose = (kind) => (way.recorded ? tag(scene, 'recorded', true) : kind === 'computed' ? tag(scene, 'computed', true) : lab.tag())
    return el('section', { class: `way-row ${name}`, 'data-lane': name, 'data-kernels': way.kernels, 'data-calls': way.calls, 'data-steps': way.steps.length, 'data-memory': way.memory },
      el('h3', {}, words.ways[name], el('small', {}, fill(lanes.counts, values), ' ', whose('measured'), ' · ', fill(lanes.moved, values), ' ', whose('computed'))),
      this.calls(name, way.steps))
  }

  /** A lane's boxes, those of one call of Python's together under one mark. */
  calls(name, steps) {
    const groups = []
    steps.forEach((step, place) => {
      const last = groups.at(-1)
      if (last && step.call !== undefined && step.call === last.call) last.places.push(place)
      else groups.push({ call: step.call, places: [place] })
    })
    const calls = groups.map(({ places }) => {
      const grow = places.reduce((sum, place) => sum + Math.max(1, span(steps[place])), 0)
      const mark = places.length > 1 ? [el('em', {}, fill(this.lab.words.operations.call, { n: places.length }))] : []
      return el('div', { class: places.length > 1 ? 'call many' : 'call', style: `flex-grow: ${grow}`, 'data-call': places.length }, ...mark, el('div', {}, ...places.map((place) => this.boxes[name][place])))
    })
    return el('div', { class: groups.some(({ places }) => places.length > 1) ? 'boxes marked' : 'boxes' }, ...calls)
  }

  box(step, way, place, most) {
    const { weights, reads, writes } = step
    const high = (count) => `height: ${count ? Math.max(0.12, (HIGH * count) / most) : 0}em`
    return el('button', {
      type: 'button', class: 'operation', style: `flex-grow: ${Math.max(1, span(step))}`, 'data-operation': place, 'data-bytes': weights + reads + writes,
      title: this.sentence(way, place, step), onclick: () => this.to(this.path.findIndex(([name, at]) => name === way && at === place)),
    }, el('b', {}, title(step)), el('span', { class: 'moved' }, el('span', { class: 'in' }, el('i', { class: 'reads', style: high(reads) }), el('i', { class: 'weights', style: high(weights) })), el('span', { class: 'out' }, el('i', { class: 'writes', style: high(writes) }))))
  }

  to(step, playing = false) {
    if (!playing) this.halt()
    const { path } = this
    this.step = Math.max(-1, Math.min(path.length - 1, step))
    this.scrub.max = path.length
    this.scrub.value = this.step + 1
    const [way, place] = path[this.step] ?? ['', -1]
    Object.assign(this.root.dataset, { rows: this.rows, step: this.step + 1, of: path.length, way })
    path.forEach(([name, at], number) => {
      this.boxes[name][at].classList.toggle('now', number === this.step)
      this.boxes[name][at].classList.toggle('ahead', this.step >= 0 && number > this.step)
    })
    const { words } = this.lab
    setText(this.says, way ? this.sentence(way, place, this.boxesStep(way, place)) : words.operations.whole)
  }

  boxesStep(way, place) {
    return this.ways.find(([name]) => name === way)[1].steps[place]
  }

  sentence(way, place, step) {
    const { words } = this.lab
    const of = this.ways.find(([name]) => name === way)[1].steps.length
    const { weights, reads, writes, weight, ops = [] } = step
    const values = { n: place + 1, of, op: title(step), ops: ops.join(', '), count: ops.length, reads: bytes(reads), writes: bytes(writes), weights: bytes(weights), weight: weight.join(' + ') }
    const what = ops.length > 1 ? 'became' : weight.length > 1 ? 'joined' : 'alone'
    return [`${words.ways[way]} · ${place + 1}/${of} · ${fill(words.operations.says[what], values)}`, fill(words.operations.says[weights ? 'with' : 'without'], values)].join(' ')
  }
}

/** How many of the separate operations a box stands for. */
const span = ({ ops, weight }) => (ops?.length ? Math.min(ops.length, 6) : weight.length)

/** What is written on a box: torch's name of the operation, the weights where a product has any. */
function title({ op, ops, weight }) {
  if (ops?.length > 1) return ops.join(' ')
  const product = ['mm', 'addmm', 'mv', 'addmv', 'linear', 'mkldnn_linear', 'mkl_linear'].some((name) => op.includes(name))
  return product && weight.length ? `${op} ${weight.map((name) => name.replace('_proj', '')).join(' + ')}` : op
}
