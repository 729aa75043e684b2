/**
 * Operator fusion: what a word's pass is made of on this run, one layer's operations stepped through, the layer and the
 * whole pass as measured here, and the proof: the same words, and how far the numbers are apart.
 */
import { el, fill, rich, setText, tag } from '../../scene/dom.js'
import { bytes, duration, number } from '../../scene/text.js'
import { mountLab } from '../lab/lab.js'
import { Operations } from './operations.js'

const time = (seconds) => duration(seconds).join(' ')

export const mount = (element, options) => mountLab(element, options, (lab) => {
  Object.defineProperty(lab, 'layers', { get: () => layersOf(lab) })
  return { first: 'idea', idea: new Operations(lab), measured: new Measured(lab), problem: new Problem(lab), proof: new Proof(lab) }
})

/**
 * What was measured of the layer. Where compiling is not possible here, that way is a recorded result's, and marked so;
 * its times never stand as bars on one scale with those of this machine.
 */
function layersOf({ figures, shipped, recorded, own }) {
  const layers = figures?.layer ?? []
  const lacking = own?.plan.some(({ kind, lacking }) => kind === 'compiled' && lacking)
  if (recorded || !shipped || !lacking) return layers
  return layers.map((layer) => {
    const other = shipped.figures.layer.find(({ rows }) => rows === layer.rows)?.ways.compiled
    return layer.ways.compiled || !other ? layer : { ...layer, ways: { ...layer.ways, compiled: { ...other, recorded: true } } }
  })
}

/** The run on show: what a word's pass takes, and how many operations the library calls for it. */
class Problem {
  constructor(lab) {
    this.lab = lab
    this.root = el('p', { class: 'figures', 'data-problem': '' })
  }

  show() {
    const { words, facts, events, scene, summary, figures } = this.lab
    const steps = events.filter(({ type }) => type === 'decoded').map(({ seconds }) => seconds).sort((a, b) => a - b)
    if (!facts || !steps.length) return
    const middle = steps[Math.floor(steps.length / 2)]
    const [one] = this.lab.shown?.model === facts.model ? (figures?.decode ?? []) : []
    Object.assign(this.root.dataset, { seconds: middle, calls: one?.apart.calls ?? '' })
    this.root.replaceChildren(...rich(words.problem.told, { time: time(middle), layers: number(facts.layers) }), ' ', tag(scene, summary?.recorded ? 'recorded' : 'measured', true),
      ...(one ? [' ', ...rich(words.problem.calls, { calls: number(one.apart.calls), each: number(one.apart.calls / facts.layers, 0) }), ' ', this.lab.tag()] : []))
  }
}

/** The layer by rows and way; the engine's whole pass; what compiling took, or what it lacks. */
class Measured {
  constructor(lab) {
    this.lab = lab
    const { words } = lab
    this.times = lab.chart('fusion-layer')
    this.passes = [lab.chart('fusion-decode'), lab.chart('fusion-prefill')]
    this.table = el('div', { class: 'wide' })
    this.compile = el('p', { class: 'verdict', 'data-compile': '' })
    this.pass = el('div', { hidden: true }, el('h3', {}, words.pass.title), el('div', { class: 'two' }, ...this.passes.map(({ name, root }) => el('div', {}, el('h4', {}, words.pass[name.split('-')[1]]), root))), el('p', { class: 'hint' }, words.pass.lead))
    this.layer = el('div', { hidden: true }, el('h3', {}, words.layer.title), this.times.root, el('p', { class: 'hint' }, words.layer.lead), this.table)
    this.root = el('div', {}, this.layer, this.compile, this.pass)
  }

  show() {
    const { lab } = this
    const { figures, layers } = lab
    this.compiler()
    this.pass.hidden = !figures?.decode.length && !figures?.prefill.length
    this.layer.hidden = !layers.length
    if (!figures) return
    for (const chart of [...(figures.layer.length ? [this.times] : []), ...this.passes.filter(({ name }) => figures[name.split('-')[1]].length)]) lab.draw(chart)
    this.layerTable(layers)
  }

  mark(way) {
    return way?.recorded ? tag(this.lab.scene, 'recorded', true) : this.lab.tag()
  }

  rows(n) {
    return fill(this.lab.words.rows[n === 1 ? 'one' : 'many'], { n: number(n) })
  }

  layerTable(layers) {
    const { words, scene } = this.lab
    const heads = ['way', 'calls', 'kernels', 'memory', 'weights', 'allocated', 'time', 'difference']
    const computed = () => tag(scene, 'computed', true)
    const cell = (name, value, said, source) => el('td', { 'data-cell': name, 'data-value': value ?? '' }, said, ...(source ? [' ', source] : []))
    const row = ([name, way], first, { rows, ways }) => el('tr', { class: first ? 'first' : '', 'data-row': `${rows}-${name}` },
      ...(first ? [el('th', { scope: 'rowgroup', rowspan: Object.keys(ways).length }, this.rows(rows))] : []),
      el('th', { scope: 'row' }, words.ways[name]),
      cell('calls', way.calls, number(way.calls), this.mark(way)), cell('kernels', way.kernels, number(way.kernels), this.mark(way)),
      cell('memory', way.memory, way.memory === null ? '–' : bytes(way.memory), way.memory === null ? null : computed()),
      cell('weights', way.weights, way.weights === null ? '–' : bytes(way.weights), way.weights === null ? null : computed()),
      cell('allocated', way.allocated, bytes(way.allocated), this.mark(way)),
      cell('time', way.time, `× ${number(way.time, 2)}`), cell('difference', way.difference, way.difference ? way.difference.toExponential(1) : '0'))
    this.table.replaceChildren(el('table', { class: 'ways-table' },
      el('thead', {}, el('tr', {}, el('th', {}), ...heads.map((name) => el('th', { scope: 'col', title: words.heads.why[name] ?? '' }, words.heads[name])))),
      el('tbody', {}, ...layers.flatMap((layer) => Object.entries(layer.ways).map((way, place) => row(way, !place, layer))))))
  }

  /** How long the compiler took; or what is lacking here, and what to do. */
  compiler() {
    const { lab } = this
    const { words, errors, own, figures, told } = lab
    const piece = own?.plan.find(({ kind }) => kind === 'compiled')
    const made = figures?.compile
    Object.assign(this.compile.dataset, { compile: piece?.lacking || (made ? 'done' : 'none'), seconds: made?.seconds ?? '' })
    const lacks = piece?.lacking && !lab.recorded ? fill(errors[piece.lacking], { compiler: piece.compiler, device: own.machine.device }) : ''
    const shown = lab.layers.some(({ ways }) => ways.compiled?.recorded)
    if (lacks) return setText(this.compile, [lacks, ...(shown ? [words.compile.recorded] : [])].join(' '))
    if (!made) return setText(this.compile, told && piece ? words.compile.not : '')
    const each = made.each.map(({ rows, seconds }) => `${this.rows(rows)}: ${time(seconds)}`).join(words.compile.comma)
    return this.compile.replaceChildren(fill(words.compile.took, { compiler: made.compiler, seconds: time(made.seconds), each }), ' ', lab.tag())
  }
}

/** Whether all words are the same, and the largest difference of the layer's numbers each way. */
class Proof {
  constructor(lab) {
    this.lab = lab
    this.ids = el('p', { class: 'verdict', 'data-ids': '' })
    this.list = el('ul', { class: 'points' })
    this.root = el('div', {}, this.ids, this.list)
  }

  show() {
    const { figures, words, common, layers } = this.lab
    const ids = figures?.ids
    Object.assign(this.ids.dataset, { same: ids ? ids.same : '', words: ids?.words ?? '' })
    setText(this.ids, ids ? fill(words.proof[ids.same ? 'same' : 'differs'], ids) : common.unmeasured)
    const ways = ['fused', 'compiled'].map((name) => [name, layers.map(({ ways }) => ways[name]?.difference).filter((value) => value !== undefined)]).filter(([, values]) => values.length)
    this.list.replaceChildren(...ways.map(([name, values]) => {
      const most = Math.max(...values)
      return el('li', { 'data-difference': most, 'data-way': name }, fill(words.proof[most ? 'most' : 'none'], { way: words.ways[name], difference: most.toExponential(1) }))
    }))
  }
}
