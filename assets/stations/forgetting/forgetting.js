/** Forgetting: which columns are torn off at which word, whether the fact is still there, and what goes without the sink. */
import { el, fill, rich, setText, tag } from '../../scene/dom.js'
import { bytes, number, percent } from '../../scene/text.js'
import { chosen, WAYS } from './forgotten.js'
import { answers, bits, choose, strip } from '../lab/kept_answers.js'
import { mountLab } from '../lab/lab.js'
import { noteBytes, notesAt } from '../shared/cost.js'
import { TornPicture } from './torn_picture.js'

const CSS = new URL('../lab/kept.css', import.meta.url).href

export const mount = (element, options) => mountLab(element, options, (lab) => {
  const desk = { lab, words: lab.words, scene: lab.scene, paper: null, way: 'sink', budget: null, listeners: [] }
  desk.choose = (changes) => { Object.assign(desk, changes); desk.listeners.forEach((part) => part.show()) }
  const parts = { first: 'idea', idea: new TornPicture(desk), measured: new Measured(desk), problem: new Problem(desk), proof: new Proof(desk) }
  desk.listeners.push(parts.idea, parts.measured, parts.proof)
  return parts
})

class Problem {
  constructor(desk) {
    this.desk = desk
    this.text = el('p', { class: 'told' })
    this.root = el('div', {}, el('link', { rel: 'stylesheet', href: CSS }), this.text)
  }

  show() {
    const { lab, words } = this.desk
    const { facts, events } = lab
    const last = events.filter(({ kv }) => kv).at(-1)?.kv
    if (!facts || !last) return setText(this.text, words.problem.none)
    const full = facts.layer_kinds.filter((kind) => kind === 'full').length
    // What slides does so by itself: only the other layers' notes grow without end.
    const one = full * noteBytes(facts)
    const slid = notesAt(facts, facts.window) * noteBytes(facts) - one * facts.window
    this.text.replaceChildren(...rich(words.problem.told, {
      n: number(last.length), bytes: bytes(last.bytes), one: bytes(one), weights: bytes(facts.weight_bytes), same: full ? number(Math.ceil((facts.weight_bytes - slid) / one)) : '∞',
    }), ' ', tag(this.desk.scene, 'computed', true))
    return undefined
  }
}

class Measured {
  constructor(desk) {
    this.desk = desk
    this.table = el('div', { class: 'wide' })
    this.times = desk.lab.chart('forgetting-times')
    this.root = el('div', {}, el('h3', {}, desk.words.times), this.times.root, this.table)
  }

  show() {
    const { lab, words } = this.desk
    const on = chosen(this.desk)
    this.root.hidden = !on
    if (!on) return
    const measured = () => lab.tag()
    const cell = (name, value, text) => el('td', { 'data-cell': name, 'data-value': value }, text, ' ', measured())
    const rows = WAYS.flatMap((way) => Object.entries(on.paper.ways[way]).map(([budget, told]) =>
      el('tr', { 'data-way': way, 'data-budget': budget, class: told.right ? 'best' : '' }, el('th', { scope: 'row' }, fill(words.table[way], { n: budget })),
        cell('bytes', told.bytes, `${bytes(told.bytes)} (${percent(told.share)})`),
        el('td', { 'data-cell': 'fact', 'data-value': told.fact_kept }, fill(words.table.fact, { n: told.fact_kept, of: told.fact.length })),
        el('td', { class: `right ${told.right}`, 'data-cell': 'right', 'data-value': String(told.right) }, words[told.right ? 'right' : 'wrong']),
        cell('kl', told.kl_mean, bits(told.kl_mean)), cell('agreed', told.agreed, percent(told.agreed)),
        cell('slower', told.slower ?? '', told.slower ? `× ${number(told.slower, 2)}` : '–'))))
    this.table.replaceChildren(el('table', { class: 'kept' },
      el('thead', {}, el('tr', {}, ...['way', 'bytes', 'fact', 'right', 'kl', 'agreed', 'slower'].map((name) => el('th', { scope: 'col' }, words.heads[name])))),
      el('tbody', {}, ...rows)))
    lab.draw(this.times, { pick: `${this.desk.paper}/${this.desk.budget}` })
  }
}

class Proof {
  constructor(desk) {
    this.desk = desk
    this.sink = el('p', { class: 'verdict', 'data-sink': '' })
    this.answers = el('div', {})
    this.strip = el('div', {})
    this.root = el('div', {}, this.sink, this.answers, el('p', { class: 'hint' }, desk.words.strip), this.strip)
  }

  show() {
    const { words, budget } = this.desk
    const on = chosen(this.desk)
    this.root.hidden = !on
    if (!on) return
    const { window, sink } = on.paper.ways
    const [without, withIt] = [window[this.desk.budget], sink[this.desk.budget]]
    Object.assign(this.sink.dataset, { sink: withIt?.kl_mean ?? '', without: without?.kl_mean ?? '' })
    setText(this.sink, without && withIt ? fill(words.sink, { n: this.desk.budget, without: bits(without.kl_mean), with: bits(withIt.kl_mean) }) : '')
    const entries = WAYS.filter((way) => on.paper.ways[way][this.desk.budget])
      .map((way) => ({ name: way, label: fill(words.table[way], { n: this.desk.budget }), told: on.paper.ways[way][this.desk.budget] }))
    this.answers.replaceChildren(answers(this.desk, entries))
    this.strip.replaceChildren(choose('strip', words.way, on.ways.map((way) => [way, words.ways[way]]), this.desk.way, (way) => this.desk.choose({ way, budget })), strip(this.desk, on.told))
  }
}
