/**
 * FlashAttention: how large the matrix of weights would be, the tiles at work on a real head, torch's two kernels timed and
 * weighed here at growing lengths, and the proof that tiles, kernel and formula say the same.
 */
import { el, fill, setText, tag } from '../../scene/dom.js'
import { bytes, duration, number } from '../../scene/text.js'
import { mountLab } from '../lab/lab.js'
import { TilesView } from './tiles_view.js'

const ENOUGH = 1e-5
const time = (seconds) => duration(seconds).join(' ')

export const mount = (element, options) => mountLab(element, options, (lab) => {
  const proof = new Proof(lab)
  return { first: 'idea', idea: new TilesView(lab, (head, walk) => proof.of(head, walk)), measured: new Measured(lab), problem: new Problem(lab), proof }
})

/** One layer's matrix of weights beside its K and V, for this paper and for longer ones. */
class Problem {
  constructor(lab) {
    this.lab = lab
    this.told = el('p', { class: 'figures', 'data-problem': '' })
    this.chart = lab.chart('flash-matrix')
    this.root = el('div', {}, this.told, this.chart.root)
  }

  show() {
    const { lab } = this
    if (!lab.facts) return
    const { words, facts, scene } = lab
    const own = lab.started.prompt.length
    const matrix = (n) => n * n * facts.heads * facts.value_bytes
    const all = matrix(own) * facts.layers
    Object.assign(this.told.dataset, { n: own, matrix: matrix(own), all })
    this.told.replaceChildren(fill(words.problem.told, { n: number(own), weights: number(own * own), heads: facts.heads, layers: facts.layers, bytes: bytes(all) }), ' ', tag(scene, 'computed', true))
    this.chart.show({ run: lab.options.run })
  }
}

/** Two charts and a table of one layer's attention; a chart of the engine's own runs. */
class Measured {
  constructor(lab) {
    this.lab = lab
    const { words } = lab
    const { kernels } = words
    this.layer = [lab.chart('flash-time'), lab.chart('flash-memory')]
    this.runs = lab.chart('flash-run')
    this.table = el('div', { class: 'wide' })
    const side = (title, chart) => el('div', {}, el('h3', {}, title), chart.root)
    this.kernels = el('div', { hidden: true }, el('div', { class: 'two' }, side(kernels.time_title, this.layer[0]), side(kernels.memory_title, this.layer[1])), this.table)
    this.engine = el('div', { hidden: true }, el('h3', {}, kernels.runs), this.runs.root, el('p', { class: 'hint' }, kernels.runs_lead))
    this.root = el('div', {}, this.kernels, this.engine)
  }

  show() {
    const { lab } = this
    const { kernel = [], run = [] } = lab.figures ?? {}
    this.kernels.hidden = !kernel.length
    this.engine.hidden = !run.length
    if (kernel.length) {
      for (const chart of this.layer) lab.draw(chart)
      this.list(kernel)
    }
    if (run.length) lab.draw(this.runs)
  }

  list(kernel) {
    const { words, scene } = this.lab
    const range = ({ seconds }) => (seconds ? el('small', {}, seconds.repeats > 1 ? `${time(seconds.low)} – ${time(seconds.high)}` : words.kernels.once) : '')
    const cell = (name, value, ...content) => el('td', { 'data-figure': name, 'data-value': value ?? '' }, ...content)
    const row = (one) => el('tr', { 'data-n': one.n }, el('th', { scope: 'row' }, number(one.n)),
      ...['math', 'fast'].map((side) => cell(`${one.n}.${side}.seconds`, one[side].seconds?.middle, one[side].seconds ? time(one[side].seconds.middle) : words.kernels.no_room, range(one[side]))),
      cell(`${one.n}.time`, one.time, one.time === null ? '' : el('b', {}, `× ${number(one.time, 1)}`)),
      ...['math', 'fast'].map((side) => cell(`${one.n}.${side}.bytes`, one[side].bytes, bytes(one[side].bytes), ' ', one[side].source === 'measured' ? this.lab.tag() : tag(scene, one[side].source, true))),
      cell(`${one.n}.memory`, one.memory, el('b', {}, `× ${number(one.memory, 0)}`)))
    const heads = ['n', 'math_time', 'fast_time', 'time', 'math_memory', 'fast_memory', 'less']
    const over = el('tr', {}, el('td'), el('th', { colspan: 3, scope: 'colgroup' }, words.kernels.time_title), el('th', { colspan: 3, scope: 'colgroup' }, words.kernels.memory_title))
    this.table.replaceChildren(el('table', {}, el('thead', {}, over, el('tr', {}, ...heads.map((name) => el('th', { scope: 'col' }, words.table[name])))), el('tbody', {}, ...kernel.map(row))))
  }
}

/** By how much tiles and kernel differ from the formula: here in the page, and as the lab measured it. */
class Proof {
  constructor(lab) {
    this.lab = lab
    this.here = el('p', { class: 'verdict', 'data-difference': '' })
    this.engine = el('p', { 'data-engine': '' })
    this.root = el('div', {}, this.here, this.engine)
  }

  of(head, walk) {
    const { words } = this.lab
    const difference = walk.difference()
    Object.assign(this.here.dataset, { difference, kernel: head.difference, n: head.n, good: difference <= ENOUGH })
    setText(this.here, fill(words.proof[difference <= ENOUGH ? 'same' : 'differs'], { difference: small(difference), kernel: small(head.difference), numbers: number(head.n * head.size) }))
  }

  show() {
    const { figures, words } = this.lab
    const tiles = figures?.tiles
    if (!tiles) return
    Object.assign(this.engine.dataset, { tiles: tiles.tiles, fast: tiles.fast })
    this.engine.replaceChildren(fill(words.proof.engine, { ...tiles, layer: tiles.layer + 1, tiles: small(tiles.tiles), fast: small(tiles.fast), size: tiles.size }), ' ', this.lab.tag())
  }
}

/** 0.0000021 as 2.1 × 10⁻⁶. */
function small(value) {
  if (!value) return '0'
  const power = Math.floor(Math.log10(value))
  const digits = [...String(Math.abs(power))].map((digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[digit]).join('')
  return `${number(value / 10 ** power, 1)} × 10${power < 0 ? '⁻' : ''}${digits}`
}
