/** Which query heads read the same notes, drawn as groups; click a set of notes to see it above. */
import { el, fill, setText, svg, tag } from '../../scene/dom.js'
import { bytes } from '../../scene/text.js'
import { noteBytes, sharing } from '../shared/cost.js'

const [WIDE, HEAD, GAP] = [760, 17, 26]

export class Sharing {
  /** `desk`: {words, scene, trace, choice, onHead(head)}. */
  constructor(desk) {
    this.desk = desk
    this.picture = el('div', { class: 'groups' })
    this.sentence = el('p', { 'data-sharing': true })
    this.ways = el('ol', { class: 'ways' })
    this.root = el('div', { class: 'twin even' }, el('div', {}, this.picture, this.sentence), el('div', {}, this.ways))
  }

  draw() {
    const { words, trace, choice, onHead } = this.desk
    if (!trace.started) return
    const { heads, kv_heads } = trace.facts
    const { group, kind } = sharing(trace.facts)
    const space = (WIDE - (kv_heads - 1) * (group > 1 ? GAP : 4)) / heads
    const radius = Math.min(HEAD, space * 0.42)
    const start = (kv) => kv * (group * space + (group > 1 ? GAP : 4))
    const groups = Array.from({ length: kv_heads }, (_, kv) => {
      const left = start(kv)
      const middle = left + (group * space) / 2
      const width = Math.min(group * space - 6, 150)
      const queries = Array.from({ length: group }, (_, index) => {
        const x = left + (index + 0.5) * space
        return [svg('path', { d: `M${x} ${44 + radius} C${x} 86 ${middle} 78 ${middle} 108`, class: 'string' }),
          svg('circle', { cx: x, cy: 44, r: radius, class: 'query' }),
          svg('text', { x, y: 44 + radius * 0.34, 'text-anchor': 'middle', style: `font-size: ${Math.max(7, radius * 0.95)}px` }, String(kv * group + index + 1))]
      }).flat()
      const lines = [0, 1, 2].map((line) => svg('path', { d: `M${middle - width / 2 + width * 0.12} ${124 + line * 12} h${width * (line === 2 ? 0.45 : 0.76)}`, class: 'line' }))
      const name = fill(words.sharing.notes, { n: kv + 1 })
      const sheet = svg('g', { class: 'notes', tabindex: 0, role: 'button', 'aria-pressed': kv === choice.head, 'aria-label': name, 'data-kv-head': kv, onclick: () => onHead(kv), onkeydown: (event) => (event.key === 'Enter' || event.key === ' ') && (event.preventDefault(), onHead(kv)) },
        svg('rect', { x: middle - width / 2, y: 108, width, height: 52, rx: 3 }), ...lines,
        svg('text', { x: middle, y: 180, 'text-anchor': 'middle' }, width > 60 ? name : String(kv + 1)))
      return svg('g', {}, ...queries, sheet)
    })
    this.picture.replaceChildren(svg('svg', { viewBox: `-4 0 ${WIDE + 8} 190`, role: 'group', 'aria-label': words.sharing.title },
      svg('text', { x: 0, y: 14, class: 'side' }, fill(words.sharing.queries, { n: heads })), ...groups))
    Object.assign(this.sentence.dataset, { kind, heads, kvHeads: kv_heads, group })
    setText(this.sentence, fill(words.sharing[kind], { heads, kv_heads, group, model: trace.facts.model }))
    this.compare(heads, kv_heads)
  }

  /** The same model if its heads shared otherwise: one token's notes in all layers. */
  compare(heads, kvHeads) {
    const { words, trace, scene } = this.desk
    const { facts } = trace
    const most = facts.layers * noteBytes(facts, heads)
    const between = kvHeads > 1 && kvHeads < heads ? [['built', kvHeads]] : []
    const ways = [['own', heads], ...between, ['one', 1]].map(([name, count]) => {
      const size = facts.layers * noteBytes(facts, count)
      return el('li', { 'data-way': name, 'data-size': size, class: count === kvHeads ? 'built' : '' },
        el('span', {}, fill(words.ways[name], { n: count }), count === kvHeads ? ` ${words.ways.this}` : ''), el('b', {}, bytes(size)), el('i', { style: `width: ${(100 * size) / most}%` }))
    })
    this.ways.replaceChildren(el('li', { class: 'title' }, words.ways.title, ' ', tag(scene, 'computed')), ...ways)
  }
}
