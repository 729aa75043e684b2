/**
 * Speculative decoding: one pass a word on this run, an answer stepped through with its guesses, what a word takes with and
 * without as measured here, what a checking pass costs and how many guesses it must get right, and the proof.
 */
import { el, fill, rich, setText, tag } from '../../scene/dom.js'
import { bytes, duration, number, percent } from '../../scene/text.js'
import { Drafts } from './drafts.js'
import { median } from '../shared/figures.js'
import { mountLab } from '../lab/lab.js'

const time = (seconds) => duration(seconds).join(' ')

export const mount = (element, options) => mountLab(element, options, (lab) =>
  ({ first: 'idea', problem: new Problem(lab), idea: new Drafts(lab), measured: new Measured(lab), proof: new Proof(lab) }))

/** The run on show: how many passes its words took, and what each read. */
class Problem {
  constructor(lab) {
    this.lab = lab
    this.root = el('p', { class: 'figures', 'data-problem': '' })
  }

  show() {
    const { words, events, scene, summary, started } = this.lab
    const steps = events.filter(({ type }) => type === 'decoded')
    const chosen = events.filter(({ type }) => type === 'chose').length
    if (!started || !steps.length) return
    const seconds = median(steps.map((step) => step.seconds))
    Object.assign(this.root.dataset, { words: chosen, passes: steps.length, seconds })
    const template = steps.length < chosen - 1 ? words.problem.drafted : words.problem.told
    this.root.replaceChildren(...rich(template, { words: number(chosen), passes: number(steps.length), time: time(seconds), bytes: bytes(started.facts.weight_bytes) }), ' ', tag(scene, summary?.recorded ? 'recorded' : 'measured', true))
  }
}

/** Time per word for each paper, guesses made and accepted, query lengths; what a pass costs; a smaller model. */
class Measured {
  constructor(lab) {
    this.lab = lab
    const { words } = lab
    const part = (name, ...content) => el('div', { hidden: true }, el('h3', {}, words[name].title), el('p', { class: 'hint' }, words[name].lead), ...content)
    this.charts = Object.fromEntries(['words', 'passes', 'pays'].map((name) => [name, lab.chart(`speculative-${name}`)]))
    this.paying = el('div', { class: 'wide' })
    this.table = el('div', { class: 'wide' })
    this.needed = el('ul', { class: 'points', 'data-needed': '' })
    this.model = el('p', { 'data-smaller': '' })
    this.answers = part('times', this.charts.words.root)
    this.guesses = part('guesses', this.table)
    this.passes = part('passes', el('div', { class: 'two' }, this.charts.passes.root, this.charts.pays.root), this.needed, this.paying)
    this.smaller = part('smaller', this.model)
    this.root = el('div', {}, this.answers, this.guesses, this.passes, this.smaller)
  }

  show() {
    const { figures } = this.lab
    const { answers = [], passes = null, smaller = null } = figures ?? {}
    this.answers.hidden = this.guesses.hidden = !answers.length
    this.passes.hidden = !passes
    this.smaller.hidden = !smaller
    if (answers.length) this.drawAnswers(answers)
    if (passes) this.drawPasses(passes, answers)
    if (smaller) this.drawSmaller(smaller)
  }

  close() {
    Object.values(this.charts).forEach((chart) => chart.close())
  }

  way({ draft, by }) {
    const { ways } = this.lab.words
    return fill(by ? ways.model : ways.lookup, { k: draft })
  }

  drawAnswers(answers) {
    const { lab } = this
    const { words } = lab
    const measured = () => lab.tag()
    lab.draw(this.charts.words)
    const heads = ['paper', 'tokens', 'steps', 'per_step', 'offered', 'accepted', 'rate', 'reads']
    const cell = (one, name, say) => el('td', { 'data-cell': name, 'data-value': one[name] ?? '' }, one[name] === null ? '–' : say(one[name]))
    this.table.replaceChildren(el('table', { class: 'tally' },
      el('thead', {}, el('tr', {}, ...heads.map((name) => el('th', { scope: 'col' }, words.heads[name])))),
      el('tbody', {}, ...answers.map((one) => el('tr', { 'data-row': keyOf(one) },
        el('th', { scope: 'row' }, words.papers[one.paper], el('small', {}, this.way(one))),
        cell(one, 'tokens', number), cell(one, 'steps', number), cell(one, 'per_step', (n) => number(n, 2)), cell(one, 'offered', number),
        cell(one, 'accepted', number), cell(one, 'rate', percent), el('td', {}, strip(one, words)))))),
    el('p', { class: 'key' }, el('span', {}, el('i', { class: 'newest' }), words.key.newest), el('span', {}, el('i', { class: 'kept' }), words.key.kept), el('span', {}, el('i', { class: 'refused' }), words.key.refused), ' ', measured()))
  }

  /** What a pass over several tokens costs, and from it how many guesses a pass must get right; beside it what it got. */
  drawPasses({ n, needed }, answers) {
    const { lab } = this
    const { words, scene } = lab
    setText(this.passes.querySelector('.hint'), fill(words.passes.lead, { n: number(n) }))
    for (const name of ['passes', 'pays']) lab.draw(this.charts[name])
    this.needed.replaceChildren(...Object.entries(needed).map(([k, value]) => el('li', { 'data-k': k, 'data-value': value },
      fill(words.passes.needed, { k, read: +k + 1, times: number(value + 1, 2), needed: number(Math.max(0, value), 2) }), ' ', tag(scene, 'computed', true))))
    this.drawPaying(answers.filter(({ each, expected }) => each !== null && expected !== null))
  }

  /** What each answer got right, what that should make of a word by the passes' costs alone, and what was measured. */
  drawPaying(answers) {
    const { lab } = this
    const { words, scene } = lab
    const times = (value) => (value === null ? '–' : `× ${number(value, 2)}`)
    const verdict = ({ ratio }) => (ratio === null ? '' : ratio < 0.95 ? 'wins' : ratio > 1.05 ? 'loses' : 'even')
    this.paying.replaceChildren(...(answers.length ? [el('table', { class: 'tally' },
      el('thead', {}, el('tr', {}, ...['paper', 'each', 'expected', 'ratio', 'verdict'].map((name) => el('th', { scope: 'col' }, words.heads[name])))),
      el('tbody', {}, ...answers.map((one) => el('tr', {},
        el('th', { scope: 'row' }, words.papers[one.paper], el('small', {}, this.way(one))),
        el('td', { 'data-each': keyOf(one), 'data-value': one.each }, number(one.each, 2), ' ', lab.tag()),
        el('td', { 'data-expected': keyOf(one), 'data-value': one.expected }, times(one.expected), ' ', tag(scene, 'computed', true)),
        el('td', { 'data-ratio': keyOf(one), 'data-value': one.ratio ?? '' }, times(one.ratio), ' ', lab.tag()),
        el('td', { class: `pays ${verdict(one)}` }, words.verdict[verdict(one)] ?? '')))))] : []))
  }

  drawSmaller({ name, looked }) {
    const { words } = this.lab
    Object.assign(this.model.dataset, { name, looked: looked.map((one) => `${one.name}:${one.why}`).join(' ') })
    const found = looked.find((one) => !one.why)
    const why = looked.map((one) => fill(words.smaller[one.why || 'fits'], { model: one.title })).join(' ')
    setText(this.model, found ? fill(words.smaller.found, { model: found.title }) : `${words.smaller.none} ${why}`)
  }
}

const keyOf = ({ paper, draft, by }) => `${paper}-${draft}${by ? `-${by}` : ''}`

/** The query length of each pass as a column: the newest token, guesses that were right, guesses that were not. */
function strip({ reads, kept }, words) {
  const most = Math.max(...reads, 1)
  return el('div', { class: 'strip-reads', role: 'img', 'aria-label': fill(words.heads.strip, { list: reads.join(', ') }), 'data-reads': reads.join(' '), style: `--most: ${most}` },
    ...reads.map((read, i) => el('span', { title: `${kept[i]} / ${read - 1}` },
      ...Array.from({ length: read - 1 - kept[i] }, () => el('i', { class: 'refused' })), ...Array.from({ length: kept[i] }, () => el('i', { class: 'kept' })), el('i', { class: 'newest' }))))
}

class Proof {
  constructor(lab) {
    this.lab = lab
    this.told = el('p', { class: 'verdict', 'data-same': '' })
    this.list = el('ul', { class: 'proofs' })
    this.root = el('div', {}, this.told, this.list)
  }

  show() {
    const { figures, words, common } = this.lab
    const same = figures?.same
    Object.assign(this.told.dataset, { same: same?.same ?? '', of: same?.of ?? '' })
    setText(this.told, same ? fill(words.proof[same.same === same.of ? 'same' : 'differs'], same) : common.unmeasured)
    const first = (figures?.answers ?? []).filter((one, i, all) => all.findIndex(({ paper }) => paper === one.paper) === i)
    this.list.replaceChildren(...first.map(({ paper, text, same: equal }) => el('li', { 'data-paper': paper, 'data-same': equal }, el('b', {}, words.papers[paper]), ' ', el('q', { dir: 'auto' }, text))))
  }
}
