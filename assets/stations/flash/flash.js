/**
 * FlashAttention: how large the matrix of weights would be, the tiles at work on a real head, torch's two kernels timed and
 * weighed here at growing lengths, and the proof that tiles, kernel and formula say the same.
 */
import { el, fill, setText, tag } from '../../scene/dom.js'
import { bytes, duration, number } from '../../scene/text.js'
import { Curves } from '../shared/curves.js'
import { mountLab } from '../lab/lab.js'
import { bars } from '../lab/bars.js'
import { TilesView } from './tiles_view.js'

const LONG = [2048, 8192]
const ENOUGH = 1e-5
const time = (seconds) => duration(seconds).join(' ')

export const mount = (element, options) => mountLab(element, options, (lab) => {
  const proof = new Proof(lab)
  return { problem: new Problem(lab), idea: new TilesView(lab, (head, walk) => proof.of(head, walk)), measured: new Measured(lab), proof }
})

/** One layer's matrix of weights beside its K and V, for this paper and for longer ones. */
class Problem {
  constructor(lab) {
    this.lab = lab
    this.told = el('p', { class: 'figures', 'data-problem': '' })
    this.bars = el('div')
    this.root = el('div', {}, this.told, this.bars)
  }

  show() {
    const { lab } = this
    if (!lab.facts) return
    const { words, facts, scene } = lab
    const own = lab.started.prompt.length
    const matrix = (n) => n * n * facts.heads * facts.value_bytes
    const notes = (n) => 2 * n * facts.kv_heads * facts.head_size * facts.value_bytes
    const all = matrix(own) * facts.layers
    Object.assign(this.told.dataset, { n: own, matrix: matrix(own), all })
    this.told.replaceChildren(fill(words.problem.told, { n: number(own), weights: number(own * own), heads: facts.heads, layers: facts.layers, bytes: bytes(all) }), ' ', tag(scene, 'computed', true))
    const lengths = [own, ...LONG.filter((n) => n > own && n <= facts.context)]
    this.bars.replaceChildren(bars(lengths.map((n) => ({
      label: fill(words.problem[n === own ? 'own' : 'longer'], { n: number(n) }),
      sides: [
        { name: `matrix-${n}`, mark: 'before', label: words.problem.matrix, middle: matrix(n) },
        { name: `notes-${n}`, mark: 'after', label: words.problem.notes, middle: notes(n) },
      ],
    })), { say: bytes, tag: () => tag(scene, 'computed', true) }))
  }
}

/** Two charts and a table of one layer's attention; bars of the engine's own runs. */
class Measured {
  constructor(lab) {
    this.lab = lab
    const { words } = lab
    const chart = (name) => new Curves({ name: `kernel-${name}`, label: words.chart[name], across: words.chart.across, up: words.chart[name] })
    this.time = chart('time')
    this.memory = chart('memory')
    this.table = el('div', { class: 'wide' })
    this.runs = el('div', { 'data-runs': '' })
    this.charts = el('div', { class: 'two' }, el('div', {}, el('h3', {}, words.chart.time_title), this.time.root), el('div', {}, el('h3', {}, words.chart.memory_title), this.memory.root))
    this.kernels = el('div', { hidden: true }, this.charts, this.table)
    this.engine = el('div', { hidden: true }, el('h3', {}, words.chart.runs), el('p', { class: 'hint' }, words.chart.runs_lead), this.runs)
    this.root = el('div', {}, this.kernels, this.engine)
  }

  show() {
    const { figures, words } = this.lab
    this.kernels.hidden = !figures?.kernel.length
    this.engine.hidden = !figures?.run.length
    if (!figures) return
    const { kernel, run } = figures
    const series = (value, factor) => ['math', 'fast'].map((side) => ({
      name: side, label: words.sides[side], mark: side === 'math' ? 'before' : 'after',
      points: kernel.filter((one) => value(one[side]) !== null).map((one) => [one.n, factor * value(one[side])]),
    })).filter(({ points }) => points.length)
    if (kernel.length) {
      this.time.show(series(({ seconds }) => seconds?.middle ?? null, 1000))
      this.memory.show(series(({ bytes: count }) => count, 1e-6))
      this.list(kernel)
    }
    this.runs.replaceChildren(bars(run.map((one) => ({
      label: fill(words.chart.tokens, { n: number(one.n) }),
      sides: ['math', 'fast'].map((side) => ({ name: `run-${one.n}-${side}`, mark: side === 'math' ? 'before' : 'after', label: words.sides[side], ...one[side] })),
    })), { say: time, tag: () => this.lab.tag() }))
  }

  list(kernel) {
    const { words, scene } = this.lab
    const range = ({ seconds }) => (seconds ? el('small', {}, seconds.repeats > 1 ? `${time(seconds.low)} – ${time(seconds.high)}` : words.chart.once) : '')
    const cell = (name, value, ...content) => el('td', { 'data-figure': name, 'data-value': value ?? '' }, ...content)
    const row = (one) => el('tr', { 'data-n': one.n }, el('th', { scope: 'row' }, number(one.n)),
      ...['math', 'fast'].map((side) => cell(`${one.n}.${side}.seconds`, one[side].seconds?.middle, one[side].seconds ? time(one[side].seconds.middle) : words.chart.no_room, range(one[side]))),
      cell(`${one.n}.time`, one.time, one.time === null ? '' : el('b', {}, `× ${number(one.time, 1)}`)),
      ...['math', 'fast'].map((side) => cell(`${one.n}.${side}.bytes`, one[side].bytes, bytes(one[side].bytes), ' ', one[side].source === 'measured' ? this.lab.tag() : tag(scene, one[side].source, true))),
      cell(`${one.n}.memory`, one.memory, el('b', {}, `× ${number(one.memory, 0)}`)))
    const heads = ['n', 'math_time', 'fast_time', 'time', 'math_memory', 'fast_memory', 'less']
    const over = el('tr', {}, el('td'), el('th', { colspan: 3, scope: 'colgroup' }, words.chart.time_title), el('th', { colspan: 3, scope: 'colgroup' }, words.chart.memory_title))
    this.table.replaceChildren(el('table', {}, el('thead', {}, over, el('tr', {}, ...heads.map((name) => el('th', { scope: 'col' }, words.table[name])))), el('tbody', {}, ...kernel.map(row))))
  }

  resize() {
    this.time.draw()
    this.memory.draw()
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
