/**
 * Continuous batching: eight people come one after another and are served one by one, in batches that wait for their
 * slowest, and with everybody joining and leaving at any step; all really run. Then what a step takes, and gives, by how
 * many write in it, and the library's own continuous batching beside ours.
 */
import { el, fill, rich, setText, tag } from '../../scene/dom.js'
import { bytes, duration, number } from '../../scene/text.js'
import { Desk } from '../lab/desk.js'
import { mountLab } from '../lab/lab.js'
import { Together } from '../lab/together.js'

const WAYS = ['alone', 'static', 'continuous']
const time = (seconds) => duration(seconds).join(' ')

export const mount = (element, options) => mountLab(element, options, (lab) => {
  const group = (way) => ({ name: way, runs: [1, 2, 3].map((n) => `${way}_${n}`), after: 0 })
  lab.both = new Together(lab, [group('alone'), group('continuous')])
  return { first: 'idea', problem: new Problem(lab), idea: new Idea(lab), measured: new Measured(lab), proof: new Proof(lab) }
})

/** The run on show: what a step of it read, and how much of that would have served others too. */
class Problem {
  constructor(lab) {
    this.lab = lab
    this.root = el('p', { class: 'figures', 'data-problem': '' })
  }

  show() {
    const { words, events, scene, summary, started, facts } = this.lab
    const steps = events.filter(({ type }) => type === 'decoded')
    if (!steps.length || !started) return
    const together = Math.max(...steps.map((step) => step.together))
    const notes = steps[steps.length >> 1].kv.bytes
    const share = facts.weight_bytes / (facts.weight_bytes + together * notes)
    Object.assign(this.root.dataset, { steps: steps.length, together, share })
    this.root.replaceChildren(
      ...rich(words.problem[together > 1 ? 'shared' : 'own'], { n: number(steps.length), together, others: together - 1, tpot: summary?.tpot ? time(summary.tpot) : '–' }), ' ', tag(scene, summary?.recorded ? 'recorded' : 'measured', true), ' ',
      ...rich(words.problem.reads, { weights: bytes(facts.weight_bytes), notes: bytes(together * notes), share: `${number(100 * share, 1)}%` }), ' ', tag(scene, 'computed', true))
  }
}

/** The eight on one clock, served in the way chosen; all three ways to one scale. */
class Idea {
  constructor(lab) {
    this.lab = lab
    const { words } = lab
    this.none = el('p', { class: 'hint' }, lab.common.unmeasured)
    this.ways = Object.fromEntries(WAYS.map((way) => [way, el('input', { type: 'radio', name: 'way', value: way, 'data-do': `way-${way}`, onchange: () => this.choose(way) })]))
    this.choice = el('fieldset', { class: 'switch' }, el('legend', {}, words.idea.way), ...WAYS.map((way) => el('label', {}, this.ways[way], el('span', {}, words.ways[way]))))
    this.told = el('p', { 'data-way': '', 'aria-live': 'polite' })
    this.verdict = el('p', { class: 'verdict' })
    this.desk = new Desk({ words: words.desk, label: words.idea.picture, chart: lab.chart('batching-desk'), step: true, say: (t, people) => this.say(t, people) })
    this.whole = el('div', {}, el('div', { class: 'row' }, this.choice), this.verdict, this.desk.root, this.told)
    this.root = el('div', {}, this.none, this.whole)
    this.way = 'alone'
  }

  show() {
    const found = this.lab.figures?.ways ?? []
    this.none.hidden = found.length > 0
    this.whole.hidden = !found.length
    if (!found.length) return
    for (const way of WAYS) this.ways[way].disabled = !found.some((one) => one.way === way)
    this.choose(found.some(({ way }) => way === this.way) ? this.way : found[0].way)
  }

  choose(way) {
    const { figures, words } = this.lab
    const one = figures.ways.find((each) => each.way === way)
    this.way = way
    this.turns = one.turns
    this.ways[way].checked = true
    Object.assign(this.told.dataset, { way, seconds: one.seconds, tokens: one.tokens, rate: one.rate })
    setText(this.told, words.why[way])
    this.verdict.replaceChildren(...rich(words.idea.told, { tokens: number(one.tokens), seconds: time(one.seconds), rate: number(one.rate, 1), ttft: time(one.ttft.middle), most: time(one.ttft.high) }), ' ', this.lab.tag())
    const end = Math.max(...figures.ways.map(({ seconds }) => seconds))
    this.desk.show(one.members, { end, stops: one.turns.map(({ stop }) => stop) })
    this.lab.draw(this.desk.chart, { pick: way })
  }

  /** The turn that goes on at `t`: who is read, who writes, who waits, who joins and who leaves after it. */
  say(t, people) {
    const { words } = this.lab
    const place = this.turns.findIndex(({ start, stop }) => start <= t && t <= stop)
    if (place < 0) return ''
    const turn = this.turns[place]
    const next = this.turns[place + 1]
    const earlier = new Set(this.turns.slice(0, place).flatMap(({ writes }) => writes))
    const later = new Set(this.turns.slice(place + 1).flatMap(({ writes }) => writes))
    const names = (list) => list.join(words.desk.now.and)
    const said = [fill(words.turn.number, { n: place + 1, of: this.turns.length })]
    const tell = (what, list) => list.length && said.push(fill(words.turn[what], { who: names(list) }))
    tell('reads', turn.reads ? [turn.reads] : [])
    tell('writes', turn.writes)
    tell('joins', turn.writes.filter((name) => !earlier.has(name)))
    tell('leaves', next ? turn.writes.filter((name) => !later.has(name)) : [])
    tell('waits', people.filter(({ doing }) => doing === 'waiting').map(({ name }) => name).filter((name) => name !== turn.reads))
    return said.join(' ')
  }

  close() {
    this.desk.close()
  }
}

/** The whole's tokens per second and each person's times in the three ways; a step by batch size; the library's own. */
class Measured {
  constructor(lab) {
    this.lab = lab
    const { words } = lab
    this.charts = Object.fromEntries(['ways', 'rate', 'tpot', 'reference'].map((name) => [name, lab.chart(`batching-${name}`)]))
    const { ways, rate, tpot, reference } = this.charts
    this.gap = el('p', { class: 'hint' })
    this.table = el('div', { class: 'wide' })
    this.company = el('div', {}, el('h3', {}, words.company.title), ways.root, this.gap, this.table)
    this.told = el('p', { class: 'verdict', 'data-batch': '' })
    this.batch = el('div', {}, el('h3', {}, words.batch.title), el('div', { class: 'two' }, el('div', {}, el('h4', {}, words.batch.rate), rate.root), el('div', {}, el('h4', {}, words.batch.tpot), tpot.root)), this.told, el('p', { class: 'hint' }, words.batch.lead))
    this.beside = el('p', { class: 'verdict' })
    this.reference = el('div', {}, el('h3', {}, words.reference.title), reference.root, this.beside, el('p', { class: 'hint' }, words.reference.lead))
    this.root = el('div', {}, this.company, this.batch, this.reference)
  }

  show() {
    const { figures } = this.lab
    const { ways = [], batches = [], reference = null } = figures ?? {}
    this.company.hidden = !ways.length
    this.batch.hidden = !batches.length
    this.reference.hidden = !reference
    if (ways.length) this.people(ways)
    if (batches.length) this.steps(batches)
    if (reference) this.library(reference)
  }

  close() {
    Object.values(this.charts).forEach((chart) => chart.close())
  }

  people(ways) {
    const { words } = this.lab
    const tag = () => this.lab.tag()
    const names = ways[0].members.map(({ name }) => name)
    const cell = (way, name, figure) => {
      const value = way.members.find((one) => one.name === name)[figure]
      return el('td', { 'data-cell': `${way.way}-${name}-${figure}`, 'data-value': value ?? '' }, value === null ? '–' : time(value))
    }
    this.lab.draw(this.charts.ways)
    setText(this.gap, fill(words.company.lead, { gap: time(ways[0].gap) }))
    this.table.replaceChildren(el('table', { class: 'people' },
        el('thead', {}, el('tr', {}, el('th', { rowspan: 2 }, ''), el('th', { rowspan: 2 }, words.company.words), ...ways.map((one) => el('th', { colspan: 2, scope: 'colgroup' }, words.ways[one.way], ' ', tag()))),
          el('tr', {}, ...ways.flatMap(() => ['TTFT', 'TPOT'].map((name) => el('th', { scope: 'col' }, name))))),
        el('tbody', {}, ...names.map((name, i) => el('tr', { 'data-person': name }, el('th', { scope: 'row' }, name), el('td', {}, number(ways[0].members[i].words.length)), ...ways.flatMap((one) => [cell(one, name, 'ttft'), cell(one, name, 'tpot')]))))))
  }

  steps(batches) {
    const { lab } = this
    const { words } = lab
    for (const name of ['rate', 'tpot']) lab.draw(this.charts[name])
    const [first, last] = [batches[0], batches.at(-1)]
    Object.assign(this.told.dataset, { batch: last.batch, rate: last.rate, tpot: last.tpot.middle })
    const values = { batch: last.batch, from: first.batch, n: number(first.n), times: number(last.rate / first.rate, 1), slower: number(last.tpot.middle / first.tpot.middle, 1), one: time(first.tpot.middle), all: time(last.tpot.middle), weights: bytes(last.weights) }
    this.told.replaceChildren(...(batches.length > 1 ? [...rich(words.batch.told, values), ' ', lab.tag()] : []))
  }

  /** The library's own beside ours, or its own reason why not. */
  library({ library, same, of }) {
    const { words } = this.lab
    const known = library.rate !== undefined
    this.lab.draw(this.charts.reference)
    Object.assign(this.beside.dataset, { reference: known ? 'run' : 'refused', same: same ?? '', of })
    setText(this.beside, known
      ? fill(words.reference[same === of ? 'same' : 'differs'], { same, of, version: library.version })
      : fill(words.reference.refused, { version: library.version, why: library.refused }))
  }
}

class Proof {
  constructor(lab) {
    this.lab = lab
    this.told = el('p', { class: 'verdict', 'data-answers': '' })
    this.list = el('ul', { class: 'proofs' })
    this.root = el('div', {}, this.told, this.list)
  }

  show() {
    const { figures, words, common } = this.lab
    const answers = figures?.answers
    Object.assign(this.told.dataset, { same: answers?.same ?? '', of: answers?.of ?? '' })
    setText(this.told, answers ? fill(words.proof[answers.same === answers.of ? 'same' : 'differs'], answers) : common.unmeasured)
    this.list.replaceChildren(...(figures?.ways[0]?.members ?? []).map(({ name, text }) => el('li', { 'data-answer': name }, el('b', {}, name), ' ', el('q', { dir: 'auto' }, text))))
  }
}
