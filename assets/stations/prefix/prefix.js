/**
 * Prefix caching: what a second question costs on this run's paper, two papers compared token by token, what was read and
 * how long the first word took as measured here, and the proof: same words, and nothing of what was lent is changed.
 */
import { el, fill, rich, setText, tag } from '../../scene/dom.js'
import { duration, number } from '../../scene/text.js'
import { mountLab } from '../lab/lab.js'
import { Match } from './match.js'

const BLOCK = 16
const time = (seconds) => duration(seconds).join(' ')

export const mount = (element, options) => mountLab(element, options, (lab) => {
  lab.arrange = fresh
  lab.pair = ['plain', 'reuse']
  return { first: 'idea', idea: new Match(lab, BLOCK), measured: new Measured(lab), problem: new Problem(lab), proof: new Proof(lab) }
})

/** A number before the passage, so that no run of an earlier sitting has it: what is taken over is the first run's. */
function fresh(runs) {
  const mark = `${1000 + Math.floor(9000 * Math.random())}. `
  return Object.fromEntries(Object.entries(runs).map(([name, settings]) => [name, { ...settings, prompt: mark + settings.prompt }]))
}

class Problem {
  constructor(lab) {
    this.lab = lab
    this.root = el('p', { class: 'figures', 'data-problem': '' })
  }

  show() {
    const { words, events, scene, summary, started } = this.lab
    const passes = events.filter(({ type }) => type === 'prefilled')
    if (!passes.length || !started) return
    const seconds = passes.reduce((sum, pass) => sum + pass.seconds, 0)
    const own = started.own_stop - started.own_start
    Object.assign(this.root.dataset, { n: started.prompt.length, seconds })
    this.root.replaceChildren(...rich(words.problem.told, { n: number(started.prompt.length), own: number(own), time: time(seconds) }), ' ', tag(scene, summary?.recorded ? 'recorded' : 'measured', true))
  }
}

/** The lesson's query lengths and TTFT with whole notes and with blocks; TTFT by the length of the passage. */
class Measured {
  constructor(lab) {
    this.lab = lab
    const { words } = lab
    this.second = [lab.chart('prefix-queries'), lab.chart('prefix-waits')]
    this.lengths = lab.chart('prefix-lengths')
    this.told = el('p', { class: 'verdict', 'data-lesson': '' })
    this.lesson = el('div', { hidden: true }, el('div', { class: 'two' }, ...['queries', 'waits'].map((name, place) => el('div', {}, el('h3', {}, words[name].title), this.second[place].root))), this.told, el('p', { class: 'hint' }, words.queries.lead))
    this.longer = el('div', { hidden: true }, el('h3', {}, words.lengths.title), this.lengths.root)
    this.root = el('div', {}, this.lesson, this.longer)
  }

  show() {
    const { figures, words } = this.lab
    const second = Boolean(figures?.lesson || figures?.blocks)
    this.lesson.hidden = !second
    this.longer.hidden = !figures?.lengths.length
    if (!figures) return
    for (const chart of [...(second ? this.second : []), ...(figures.lengths.length ? [this.lengths] : [])]) this.lab.draw(chart)
    const { lesson } = figures
    Object.assign(this.told.dataset, lesson ? { prompt: lesson.prompt, reused: lesson.reused, read: lesson.read, times: lesson.times } : {})
    setText(this.told, lesson ? fill(words.waits.told, { prompt: number(lesson.prompt), taken: number(lesson.reused), read: number(lesson.read), times: number(lesson.times, 1) }) : '')
  }
}

/** The answers, the lent columns' checksums, and each pair of papers as the engine took it over. */
class Proof {
  constructor(lab) {
    this.lab = lab
    this.same = el('p', { class: 'verdict', 'data-answer': '' })
    this.sums = el('p', { 'data-sums': '' })
    this.pairs = el('div', { class: 'wide' })
    this.root = el('div', {}, this.same, this.sums, this.pairs)
  }

  show() {
    const { figures, words, scene, common } = this.lab
    const sat = [figures?.lesson, figures?.blocks, ...(figures?.lengths ?? [])].filter(Boolean)
    const same = sat.filter((one) => one.same).length
    Object.assign(this.same.dataset, { same: sat.length ? same : '', of: sat.length })
    setText(this.same, sat.length ? fill(words.proof[same === sat.length ? 'same' : 'differs'], { same, of: sat.length }) : common.unmeasured)
    const columns = sat.reduce((sum, one) => sum + one.columns, 0)
    const unchanged = sat.reduce((sum, one) => sum + one.unchanged, 0)
    Object.assign(this.sums.dataset, { columns, unchanged })
    this.sums.replaceChildren(...(sat.length ? [fill(words.proof[columns === unchanged ? 'unchanged' : 'changed'], { columns: number(columns), unchanged: number(unchanged) }), ' ', tag(scene, 'computed', true)] : []))
    if (!figures?.pairs) return
    const row = ({ name, tokens, match, taken, blocks }) => el('tr', { 'data-row': name }, el('th', { scope: 'row' }, words.pairs[name]),
      ...[tokens[0].length, tokens[1].length, match, taken, blocks].map((value, i) => el('td', { 'data-cell': ['first', 'second', 'match', 'taken', 'blocks'][i], 'data-value': value }, number(value))))
    this.pairs.replaceChildren(el('h3', {}, words.proof.pairs), el('table', {}, el('thead', {}, el('tr', {}, ...['pair', 'first', 'second', 'match', 'taken', 'blocks'].map((name) => el('th', { scope: 'col' }, fill(words.heads[name], { size: BLOCK }))))), el('tbody', {}, ...figures.pairs.map(row))))
  }
}
