/**
 * Chunked prefill: a long paper arrives while somebody is answered. Both on one clock, really run for each chunk size: a
 * slider moves along what the sizes give, the other's longest wait for a word against the newcomer's TTFT.
 */
import { el, fill, rich, setText, tag } from '../../scene/dom.js'
import { duration, number } from '../../scene/text.js'
import { Desk } from '../lab/desk.js'
import { mountLab } from '../lab/lab.js'
import { Together } from '../lab/together.js'

const time = (seconds) => duration(seconds).join(' ')
const AFTER = 8

export const mount = (element, options) => mountLab(element, options, (lab) => {
  lab.both = new Together(lab, [{ name: 'whole', runs: ['whole_a', 'whole_b'], after: AFTER }, { name: 'chunked', runs: ['chunked_a', 'chunked_b'], after: AFTER }])
  return { first: 'idea', problem: new Problem(lab), idea: new Idea(lab), measured: new Measured(lab), proof: new Proof(lab) }
})

/** The run on show: how many words of somebody else would have fitted into its reading. */
class Problem {
  constructor(lab) {
    this.lab = lab
    this.root = el('p', { class: 'figures', 'data-problem': '' })
  }

  show() {
    const { words, events, scene, summary, started } = this.lab
    const passes = events.filter(({ type }) => type === 'prefilled')
    const tpot = summary?.tpot
    if (!passes.length || !started || !tpot) return
    const reading = passes.reduce((sum, pass) => sum + pass.seconds, 0)
    Object.assign(this.root.dataset, { reading, tpot, words: reading / tpot })
    this.root.replaceChildren(...rich(words.problem.told, { n: number(started.prompt.length), reading: time(reading), tpot: time(tpot) }), ' ', tag(scene, summary.recorded ? 'recorded' : 'measured', true), ' ',
      ...rich(words.problem[reading < 2 * tpot ? 'few' : 'lost'], { words: number(reading / tpot, reading < 10 * tpot ? 1 : 0) }), ' ', tag(scene, 'computed', true))
  }
}

/** Both on one clock for the chunk size on the slider, and where that lies on the curve. */
class Idea {
  constructor(lab) {
    this.lab = lab
    const { words } = lab
    this.none = el('p', { class: 'hint' }, lab.common.unmeasured)
    this.lengths = el('select', { 'aria-label': words.idea.length, 'data-do': 'length', onchange: () => this.choose() })
    this.slide = el('input', { type: 'range', min: 0, value: 0, 'aria-label': words.idea.chunk, 'data-do': 'chunk', oninput: () => this.draw() })
    this.size = el('output', { class: 'clock' })
    this.told = el('p', { class: 'verdict', 'aria-live': 'polite', 'data-chunk': '' })
    this.desk = new Desk({ words: words.desk, label: words.idea.picture, chart: lab.chart('chunked-desk'), say: (t, people) => this.say(people) })
    this.trade = lab.chart('chunked-trade')
    this.whole = el('div', {}, el('div', { class: 'row' }, el('label', {}, words.idea.length, this.lengths), el('label', { class: 'slide' }, words.idea.chunk, this.slide), this.size),
      this.told, el('div', { class: 'trade' }, this.desk.root, el('div', {}, el('h3', {}, words.idea.curve), this.trade.root, el('p', { class: 'hint' }, words.idea.curve_why))))
    this.root = el('div', {}, this.none, this.whole)
  }

  show() {
    const { figures, words } = this.lab
    const found = figures?.lengths ?? []
    this.none.hidden = found.length > 0
    this.whole.hidden = !found.length
    if (!found.length) return
    const chosen = this.lengths.value
    this.lengths.replaceChildren(...found.map(({ n }) => el('option', { value: n }, fill(words.tokens, { n: number(n) }))))
    if (found.some(({ n }) => String(n) === chosen)) this.lengths.value = chosen
    this.choose(true)
  }

  /** Another length: the slider keeps its chunk size where that was measured too. */
  choose(same = false) {
    const { figures } = this.lab
    const before = this.point?.chunk
    this.length = figures.lengths.find(({ n }) => String(n) === this.lengths.value) ?? figures.lengths[0]
    const { points } = this.length
    this.slide.max = points.length - 1
    const kept = points.findIndex(({ chunk }) => chunk === before)
    if (kept >= 0 || !same) this.slide.value = Math.max(0, kept)
    this.draw()
  }

  draw() {
    const { lab } = this
    const { words } = lab
    const { points, n, quiet } = this.length
    this.point = points[+this.slide.value] ?? points[0]
    const { chunk, stall, ttft, between, passes, sitting } = this.point
    const name = chunk ? fill(words.tokens, { n: number(chunk) }) : words.whole
    setText(this.size, name)
    this.slide.setAttribute('aria-valuetext', name)
    Object.assign(this.told.dataset, { chunk, n, stall: stall.middle, ttft: ttft.middle, passes })
    this.told.replaceChildren(...rich(words.idea[chunk ? 'parts' : 'one'], { n: number(n), passes, stall: time(stall.middle), quiet: time(quiet), between: time(between.middle), ttft: time(ttft.middle) }), ' ', lab.tag())
    const { words: written, arrived, late, chunks } = sitting
    const end = Math.max(...points.map((each) => Math.max(each.sitting.words.at(-1), each.sitting.late.at(-1))))
    this.desk.show([
      { name: 'A', label: words.people.A, arrived: 0, chunks: [], words: written },
      { name: 'B', label: words.people.B, arrived, chunks, words: late },
    ], { end })
    for (const chart of [this.desk.chart, this.trade]) lab.draw(chart, { pick: `${n}/${chunk}` })
  }

  say(people) {
    const { words } = this.lab
    const [a, b] = people
    if (b.doing === 'away') return fill(words.now.before, { k: a.written })
    if (b.doing === 'reading') return fill(words.now[b.of > 1 ? 'part' : 'whole'], { part: b.part, of: b.of, k: a.written })
    if (b.doing === 'waiting') return fill(words.now.waiting, { k: a.written })
    return fill(words.now[a.doing === 'done' ? 'after' : 'both'], { k: a.written, late: b.written })
  }

  close() {
    this.desk.close()
    this.trade.close()
  }
}

/** The longest wait, and the newcomer's TTFT, by chunk size and length; what chunks cost in all. */
class Measured {
  constructor(lab) {
    this.lab = lab
    const { words } = lab
    this.none = el('p', { class: 'hint' }, lab.common.unmeasured)
    this.charts = Object.fromEntries(['stall', 'ttft'].map((name) => [name, lab.chart(`chunked-${name}`)]))
    this.prices = el('div')
    this.both = el('div', { class: 'two', hidden: true }, ...Object.entries(this.charts).map(([name, chart]) =>
      el('div', {}, el('h3', {}, words.measured[name]), chart.root, el('p', { class: 'hint' }, words.measured[`${name}_why`]))))
    this.root = el('div', {}, this.none, this.both, this.prices)
  }

  show() {
    const lengths = this.lab.figures?.lengths ?? []
    this.none.hidden = lengths.length > 0
    this.both.hidden = !lengths.length
    if (lengths.length) for (const chart of Object.values(this.charts)) this.lab.draw(chart)
    this.prices.replaceChildren(...lengths.map((one) => this.price(one)).filter(Boolean))
  }

  close() {
    Object.values(this.charts).forEach((chart) => chart.close())
  }

  /** What chunks cost in all: the passes' own seconds, whole against the smallest. */
  price({ n, points }) {
    const [whole, least] = [points.find(({ chunk }) => !chunk), points.at(-1)]
    if (!whole || !least.chunk) return null
    const { words } = this.lab
    return el('p', { class: 'verdict', 'data-price': n, 'data-times': least.reading / whole.reading }, fill(words.measured.price, { n: number(n), whole: time(whole.reading), chunk: number(least.chunk), reading: time(least.reading), times: number(least.reading / whole.reading, 2) }), ' ', this.lab.tag())
  }
}

class Proof {
  constructor(lab) {
    this.lab = lab
    this.told = el('p', { class: 'verdict', 'data-answers': '' })
    this.difference = el('p', { 'data-difference': '' })
    this.root = el('div', {}, this.told, this.difference)
  }

  show() {
    const { figures, words, common, scene } = this.lab
    const answers = figures?.answers
    Object.assign(this.told.dataset, { same: answers?.same ?? '', of: answers?.of ?? '' })
    setText(this.told, answers ? fill(words.proof[answers.same === answers.of ? 'same' : 'differs'], answers) : common.unmeasured)
    const known = answers && answers.difference !== null
    this.difference.dataset.difference = known ? answers.difference : ''
    this.difference.replaceChildren(...(known ? [fill(words.proof.difference, { difference: answers.difference ? answers.difference.toExponential(1) : '0' }), ' ', tag(scene, 'computed', true)] : []))
  }
}
