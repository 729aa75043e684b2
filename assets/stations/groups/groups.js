/**
 * Shared notes: who keeps K and V for whom, in this model and as it would be; what a position and a context take each way;
 * and a decode step with K and V read once per group against repeated, measured here.
 */
import { el, fill, setText, svg, tag } from '../../scene/dom.js'
import { bytes, number } from '../../scene/text.js'
import { mountLab } from '../lab/lab.js'

export const mount = (element, options) => mountLab(element, options, (lab) =>
  ({ first: 'idea', idea: new Ways(lab), measured: new Measured(lab), problem: new Problem(lab), proof: new Proof(lab) }))

const variantsOf = (lab) => lab.told?.plan.find(({ piece }) => piece === 'cache')?.variants ?? []

/** What the run on show kept and read, and what it would have with notes for every head. */
class Problem {
  constructor(lab) {
    this.lab = lab
    this.root = el('p', { class: 'figures', 'data-problem': '' })
  }

  show() {
    const { facts, events, words, scene, summary } = this.lab
    const last = events.findLast(({ type }) => type === 'decoded' || type === 'prefilled')
    if (!facts || !last) return
    const per = 2 * facts.layers * facts.heads * facts.head_size * facts.value_bytes
    Object.assign(this.root.dataset, { positions: last.kv.length, notes: last.kv.bytes, ordinary: per * last.kv.length })
    this.root.replaceChildren(
      fill(words.problem.told, { n: number(last.kv.length), bytes: bytes(last.kv.bytes), heads: facts.heads, kv_heads: facts.kv_heads }), ' ', tag(scene, summary?.recorded ? 'recorded' : 'measured', true), ' ',
      fill(words.problem[facts.heads === facts.kv_heads ? 'alone' : 'ordinary'], { bytes: bytes(per * last.kv.length), heads: facts.heads }), ' ', tag(scene, 'computed', true))
  }
}

/** The four ways as pictures of who shares with whom, and their bytes at a context one chooses. */
class Ways {
  constructor(lab) {
    this.lab = lab
    const { words } = lab
    this.slider = el('input', { type: 'range', min: 0, max: 100, value: 60, 'aria-label': words.ways.context, 'data-do': 'context', oninput: () => this.sizes() })
    this.said = el('output', {})
    this.pictures = el('div', { class: 'ways' })
    this.chart = lab.chart('groups-bytes')
    this.formulas = el('ul', { class: 'points formulas' })
    this.absent = el('p', { class: 'hint' }, lab.common.unmeasured)
    this.root = el('div', {}, this.pictures, el('div', { class: 'row' }, el('label', {}, words.ways.context, this.slider), this.said), this.chart.root, this.formulas)
  }

  show() {
    const { lab } = this
    const variants = variantsOf(lab)
    if (!variants.length || !lab.facts) return
    this.other = lab.told.model !== lab.facts.model
    this.facts = this.other ? this.sized(variants) : lab.facts
    this.pictures.replaceChildren(...variants.map((variant) => this.picture(variant)))
    this.formulas.replaceChildren(...variants.map((variant) => this.formula(variant)))
    this.sizes()
  }

  /** The sizes of the model that the lab tells of, where that is not the run's: they follow from its ways. */
  sized(variants) {
    const { told, facts } = this.lab
    const [ordinary, own] = ['ordinary', 'own'].map((name) => variants.find((variant) => variant.name === name))
    const width = told.machine.dtype === 'float32' ? 4 : 2
    return {
      context: facts.context, heads: ordinary.kv_heads, kv_heads: own.kv_heads, value_bytes: width,
      head_size: ordinary.values / (2 * ordinary.kv_heads), layers: ordinary.per_token / (ordinary.values * width),
    }
  }

  picture({ name, kv_heads: kept }) {
    const { words } = this.lab
    const { heads } = this.facts
    const [wide, high, edge] = [240, 112, 14]
    const place = (i, of) => edge + ((i + 0.5) * (wide - 2 * edge)) / of
    const drawing = svg('svg', { viewBox: `0 0 ${wide} ${high}`, role: 'img', 'aria-label': fill(words.ways.picture[name], { heads, kept }) })
    const boxes = kept || 1
    for (let head = 0; head < heads; head++) {
      const at = kept ? Math.floor(head / (heads / kept)) : 0
      drawing.append(svg('line', { class: kept ? 'link' : 'link latent', x1: place(head, heads), y1: 26, x2: place(at, boxes), y2: 70 }))
    }
    for (let head = 0; head < heads; head++) drawing.append(svg('circle', { class: 'query', cx: place(head, heads), cy: 20, r: Math.min(8, 90 / heads) }))
    const box = Math.min(24, (0.8 * (wide - 2 * edge)) / boxes)
    for (let i = 0; i < boxes; i++) {
      if (kept) {
        drawing.append(svg('rect', { class: 'notes', x: place(i, boxes) - box / 2, y: 70, width: box, height: 14, rx: 2 }), svg('rect', { class: 'notes', x: place(i, boxes) - box / 2, y: 87, width: box, height: 14, rx: 2 }))
      } else drawing.append(svg('rect', { class: 'notes latent', x: place(0, 1) - 44, y: 74, width: 88, height: 22, rx: 4 }), svg('text', { x: place(0, 1), y: 89, 'text-anchor': 'middle' }, words.ways.latent_box))
    }
    const mine = name === 'own'
    return el('figure', { class: mine ? 'way own' : 'way', 'data-way': name, 'data-kept': kept }, drawing,
      el('figcaption', {}, el('b', {}, words.ways.name[this.title(name)]), ' ', mine ? el('span', { class: 'mine' }, this.other ? this.lab.told.model : words.ways.mine) : '', el('small', {}, words.ways.about[name])))
  }

  /** What the model's own way is called: it may be the ordinary one, or the one that shares all. */
  title(name) {
    const { heads, kv_heads: kept } = this.facts
    if (name !== 'own') return name
    return kept === heads ? 'ordinary' : kept === 1 ? 'multi' : 'grouped'
  }

  formula({ name, kv_heads: kept, values, per_token: per }) {
    const { words, scene } = this.lab
    const { layers, head_size: size, value_bytes: width } = this.facts
    const text = fill(words.ways[kept ? 'formula' : 'formula_latent'], { layers, kept, size, width, half: Math.floor(size / 2), per: number(per) })
    return el('li', { 'data-formula': name, 'data-value': per, 'data-values': values }, el('b', {}, words.ways.name[this.title(name)]), ' ', text, ' ', tag(scene, 'computed', true))
  }

  sizes() {
    const { lab, slider } = this
    if (!this.facts) return
    const { words } = lab
    const n = Math.max(1, Math.round(this.facts.context ** (slider.value / 100)))
    setText(this.said, fill(words.ways.tokens, { n: number(n) }))
    slider.dataset.n = n
    this.chart.show({ run: lab.options.run, tokens: n })
  }
}

/** A decode step both ways against how much it looks at; what real caches of these shapes take. */
class Measured {
  constructor(lab) {
    this.lab = lab
    const { words } = lab
    this.chart = lab.chart('groups-step')
    this.decode = el('div', { hidden: true }, el('h3', {}, words.step.title), this.chart.root)
    this.cache = el('p', { 'data-cache': '' })
    this.root = el('div', {}, this.decode, this.cache)
  }

  show() {
    const { figures, words } = this.lab
    this.decode.hidden = !figures?.decode.length
    if (!figures) return
    const { decode, cache } = figures
    if (decode.length) this.lab.draw(this.chart)
    if (!cache) return
    const { ordinary, own, multi } = cache.allocated
    Object.assign(this.cache.dataset, { ordinary, own, multi, positions: cache.positions })
    this.cache.replaceChildren(fill(words.step.cache, { n: number(cache.positions), ordinary: bytes(ordinary), own: bytes(own), multi: bytes(multi) }), ' ', this.lab.tag())
  }
}

class Proof {
  constructor(lab) {
    this.lab = lab
    this.root = el('p', { class: 'verdict', 'data-ids': '' })
  }

  show() {
    const { figures, words, common } = this.lab
    const ids = figures?.ids
    Object.assign(this.root.dataset, { same: ids ? ids.same : '', words: ids?.words ?? '' })
    setText(this.root, ids ? fill(words.proof[ids.same ? 'same' : 'differs'], ids) : common.unmeasured)
  }
}
