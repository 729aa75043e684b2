/** A longer paper, computed: what the notes of each layer would take, and which of them a sliding layer forgets. */
import { el, fill, setText, svg, tag } from '../../scene/dom.js'
import { bytes, number } from '../../scene/text.js'
import { firstKept, noteBytes, notesAt } from '../shared/cost.js'

const [WIDE, LEFT, TALL] = [760, 26, 220]

export class Longer {
  /** `desk`: {words, scene, trace}. */
  constructor(desk) {
    this.desk = desk
    this.slider = el('input', { type: 'range', min: 0, max: 1000, value: 0, 'aria-label': desk.words.longer.length, 'data-choose': 'length', oninput: () => this.draw() })
    this.count = el('output')
    this.picture = el('div', { class: 'layers-kept' })
    this.bars = el('ol', { class: 'ways' })
    this.sentence = el('p', { 'data-longer': true, 'aria-live': 'off' })
    this.root = el('div', {},
      el('label', { class: 'moment' }, desk.words.longer.length, this.slider, this.count, tag(desk.scene, 'computed')), this.picture, this.bars, this.sentence)
  }

  /** Tokens, on a scale that doubles evenly from 16 to the model's context. */
  get length() {
    const { context } = this.desk.trace.facts
    return Math.round(16 * (context / 16) ** (+this.slider.value / 1000))
  }

  set length(tokens) {
    const { context } = this.desk.trace.facts
    this.slider.value = Math.round((1000 * Math.log(tokens / 16)) / Math.log(context / 16))
  }

  /** First beyond the window, so that the forgetting is seen; else at 1,000 tokens. */
  begin() {
    const { facts } = this.desk.trace
    this.length = Math.min(facts.context, facts.window ? 3 * facts.window : 1000)
    this.draw()
  }

  draw() {
    const { words, trace } = this.desk
    if (!trace.started) return
    const { facts } = trace
    const { length } = this
    const one = noteBytes(facts)
    const [kept, all] = [notesAt(facts, length) * one, notesAt(facts, length, false) * one]
    const sliding = facts.layer_kinds.filter((kind) => kind === 'sliding').length
    this.picture.replaceChildren(...(sliding ? [this.layers(facts, length)] : []))
    this.bars.replaceChildren(...this.compare(sliding ? { kept, all } : { kept }, facts.weight_bytes))
    setText(this.count, fill(words.longer.tokens, { n: number(length) }))
    Object.assign(this.sentence.dataset, { length, kept, all, sliding })
    setText(this.sentence, fill(sliding ? words.longer.slides : words.longer.full, {
      n: number(length), kept: bytes(kept), all: bytes(all), sliding, full: facts.layers - sliding, layers: facts.layers, window: number(facts.window - 1),
    }))
  }

  /** Bytes as bars on one scale that does not move with the slider: the weights, and the notes beside them. */
  compare(notes, weights) {
    const { words, trace } = this.desk
    const { facts } = trace
    const most = Math.max(weights, notesAt(facts, facts.context, false) * noteBytes(facts))
    const bar = (name, size) =>
      el('li', { 'data-bar': name, 'data-size': size, class: name === 'kept' ? 'built' : '' },
        el('span', {}, words.longer[`bar_${name}`]), el('b', {}, bytes(size)), el('i', { style: `width: ${Math.max(0.15, (100 * size) / most)}%` }))
    return [...Object.entries(notes), ['weights', weights]].map(([name, size]) => bar(name, size))
  }

  /** One bar a layer: what it keeps; what a sliding layer forgot is torn off. */
  layers(facts, length) {
    const { words } = this.desk
    const row = Math.min(14, TALL / facts.layers)
    const x = (position) => LEFT + ((WIDE - LEFT) * position) / length
    const sheets = facts.layer_kinds.map((kind, layer) => {
      const first = firstKept(facts, layer, length)
      const y = layer * row + 1
      const height = Math.max(2, row - 2)
      const teeth = Array.from({ length: 5 }, (_, tooth) => `L${x(first) + (tooth % 2 ? 2.5 : -2.5)} ${y + height - (height * tooth) / 4}`)
      const edge = first ? teeth.join(' ') : `L${x(0)} ${y + height} L${x(0)} ${y}`
      return svg('g', { 'data-layer': layer, 'data-first': first },
        svg('text', { x: LEFT - 6, y: y + height * 0.8, 'text-anchor': 'end' }, (layer + 1) % 5 === 0 || layer === 0 || row > 12 ? String(layer + 1) : ''),
        ...(first ? [svg('rect', { x: x(0), y, width: x(first) - x(0), height, class: 'gone', fill: 'url(#gone)' })] : []),
        svg('path', { d: `M${x(length)} ${y} L${x(length)} ${y + height} ${edge} Z`, class: `kept ${kind}` }))
    })
    const hatch = svg('pattern', { id: 'gone', width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' }, svg('path', { d: 'M0 0 V6', class: 'hatch' }))
    const foot = facts.layers * row + 15
    return svg('svg', { viewBox: `0 0 ${WIDE} ${foot + 5}`, role: 'img', 'aria-label': words.longer.title }, svg('defs', {}, hatch), ...sheets,
      svg('text', { x: x(0), y: foot }, '1'), svg('text', { x: x(length), y: foot, 'text-anchor': 'end' }, number(length)))
  }
}
