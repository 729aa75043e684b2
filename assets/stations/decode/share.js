/** What one decode step reads: weights and notes, by the formula that stands beside it. */
import { el, fill, setText, svg, tag } from '../../scene/dom.js'
import { bytes, number } from '../../scene/text.js'
import { notesAt, shareAt } from './loop.js'

const MARKS = [128, 2048, 7900]
const [WIDE, HIGH] = [1000, 100]

export class Share {
  /** `desk`: {words, scene, loop, k}. */
  constructor(desk) {
    this.desk = desk
    this.told = el('p', { class: 'figures', 'data-share': true })
    this.weights = el('i', { class: 'weights' })
    this.notes = el('i', { class: 'notes' })
    this.curve = el('div', { class: 'curve', 'aria-hidden': 'true' })
    this.formula = el('p', { class: 'formula-line' })
    this.per = el('p', { class: 'caption' })
    this.root = el('div', { class: 'share' }, this.told, el('div', { class: 'both' }, this.weights, this.notes), this.formula, this.per, this.curve,
      el('p', { class: 'caption' }, fill(desk.words.share.bits, { dtype: desk.loop.started.facts.dtype }), ' ', desk.words.share.together))
  }

  draw() {
    const { words, loop, scene, k } = this.desk
    const { facts } = loop.started
    const word = loop.words[k]
    const positions = word?.step ? word.step.position + 1 : loop.prompt + k
    const notes = word?.step?.kv.bytes ?? notesAt(facts, positions)
    const share = notes / (notes + facts.weight_bytes)
    const weights = bytes(facts.weight_bytes)
    this.told.replaceChildren(el('b', {}, fill(words.share.told, { n: k + 1, positions: number(positions), share: percent(share) })), ' ', tag(scene, 'computed'))
    Object.assign(this.told.dataset, { positions, notes, weights: facts.weight_bytes, share })
    this.notes.style.width = `${100 * share}%`
    setText(this.weights, fill(words.share.weights, { bytes: weights }))
    setText(this.notes, fill(words.share.notes, { bytes: bytes(notes) }))
    this.notes.classList.toggle('thin', share < 0.14)
    const per = 2 * facts.layers * facts.kv_heads * facts.head_size * facts.value_bytes
    const plain = notes === positions * per // else a layer slides, or this run keeps its notes in a way of its own
    setText(this.formula, fill(words.share[plain ? 'formula' : 'formula_kept'], { positions: number(positions), per: number(per), weights, notes: bytes(notes) }))
    const slides = facts.window ? ` ${fill(words.share.formula_slides, { window: number(facts.window) })}` : ''
    setText(this.per, fill(words.share.per, { per: number(per), layers: facts.layers, kv_heads: facts.kv_heads, size: facts.head_size, bytes: facts.value_bytes }) + slides)
    this.line(facts, positions)
  }

  /** The share at every length up to the model's context; the run's own stretch and the chosen word on it. */
  line(facts, positions) {
    const { words, loop } = this.desk
    const end = facts.context
    const top = Math.min(1, 1.12 * shareAt(facts, end))
    const x = (at) => (WIDE * at) / end
    const y = (share) => HIGH - (HIGH * share) / top
    const points = Array.from({ length: 129 }, (_, i) => (i * end) / 128).map((at) => `${x(at).toFixed(1)},${y(shareAt(facts, at)).toFixed(2)}`)
    const [from, to] = [loop.prompt, loop.prompt + loop.words.length]
    const dot = (at, label, kind) => el('div', { class: `dot ${kind}`, 'data-at': at, 'data-share-at': shareAt(facts, at), style: `left: ${(100 * at) / end}%; bottom: ${(100 * shareAt(facts, at)) / top}%` }, el('span', {}, label))
    const marks = [...MARKS.filter((at) => at <= end), ...(end > 1.3 * MARKS.at(-1) ? [end] : [])]
    this.curve.replaceChildren(
      svg('svg', { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: 'none' },
        svg('rect', { class: 'mine', x: x(from), y: 0, width: Math.max(2, x(to) - x(from)), height: HIGH }),
        svg('polygon', { points: `0,${HIGH} ${points.join(' ')} ${WIDE},${HIGH}` }), svg('polyline', { points: points.join(' ') })),
      ...marks.map((at) => dot(at, fill(words.share.at, { share: percent(shareAt(facts, at)), positions: number(at) }), at > 0.7 * end ? 'mark left' : 'mark')),
      dot(positions, words.share.run, 'here'),
      el('em', {}, `${words.share.axis}: 0 – ${number(end)}`))
  }
}

const percent = (share) => `${number(100 * share, share < 0.1 ? 1 : 0)}%`
