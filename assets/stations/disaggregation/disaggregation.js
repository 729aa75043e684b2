/**
 * Prefill/decode disaggregation: what this run's prefill would have cost others, two arrangements of machines simulated
 * with the costs measured here, their percentiles by load, which ratio fits, and the rules of the simulation.
 */
import { el, fill, rich, setText, tag } from '../../scene/dom.js'
import { bytes, number, percent } from '../../scene/text.js'
import { mountLab } from '../lab/lab.js'
import { Stage } from './machines.js'
import { share, Simulation, time } from './simulation.js'

const WAYS = ['colocated', 'chunked', 'split']
const MEASURES = ['ttft', 'tpot', 'pause']
const PERCENTILES = ['p50', 'p90', 'p99']
const CHUNK = 256 // tokens, as the engine reads while others write

export const mount = (element, options) => mountLab(element, options, (lab) => {
  const idea = new Idea(lab, () => parts.forEach((part) => part.simulated(idea.simulation)))
  const parts = [new Measured(lab), new Proof(lab)]
  return { first: 'idea', problem: new Problem(lab), idea, measured: parts[0], proof: parts[1] }
})

/** The run on show: for how many words' time its prefill would have held everybody else up. */
class Problem {
  constructor(lab) {
    this.lab = lab
    this.root = el('p', { class: 'figures', 'data-problem': '' })
  }

  show() {
    const { words, events, scene, summary, started } = this.lab
    const passes = events.filter(({ type }) => type === 'prefilled')
    const chose = events.filter(({ type }) => type === 'chose')
    if (!passes.length || chose.length < 2 || !started) return
    const seconds = passes.reduce((sum, pass) => sum + pass.seconds, 0)
    const read = passes.reduce((sum, pass) => sum + pass.stop - pass.start, 0)
    const tpot = (chose.at(-1).at - chose[0].at) / (chose.length - 1)
    Object.assign(this.root.dataset, { n: read, seconds, tpot })
    const told = rich(words.problem.told, { n: number(read), time: time(seconds), tpot: time(tpot), times: number(seconds / tpot, 1) })
    const pause = (seconds * CHUNK) / read
    this.root.replaceChildren(...told, ' ', tag(scene, summary?.recorded ? 'recorded' : 'measured', true),
      ...(read > CHUNK ? [' ', ...rich(words.problem.chunks, { chunk: CHUNK, pause: time(pause) }), ' ', tag(scene, 'computed', true)] : []))
  }
}

/** The sliders and the picture. */
class Idea {
  constructor(lab, onChange) {
    this.lab = lab
    this.none = el('p', { class: 'hint' }, lab.words.idea.none)
    this.stage = new Stage(lab)
    this.simulation = new Simulation(lab, () => {
      this.stage.show(this.simulation.sim)
      onChange()
    })
    this.root = el('div', {}, el('link', { rel: 'stylesheet', href: new URL('disaggregation.css', import.meta.url).href }), this.none, this.stage.root, this.simulation.root)
  }

  show() {
    this.none.hidden = Boolean(this.lab.figures?.simulated)
    this.simulation.root.hidden = !this.none.hidden
    this.simulation.show()
  }

  kept() {
    return { asked: this.simulation.values }
  }

  close() {
    this.simulation.close()
    this.stage.close()
  }
}

/** What the simulation is fed with, as measured; what comes out: a table for one crowd, curves by load, ratios. */
class Measured {
  constructor(lab) {
    this.lab = lab
    const { words } = lab
    const { costs, loads } = words
    const charts = (names) => Object.fromEntries(names.map((name) => [name, lab.chart(`disaggregation-${name}`)]))
    this.fed = charts(['reads', 'steps'])
    this.people = charts(MEASURES)
    this.charts = charts([...MEASURES.map((name) => `load-${name}`), 'ratios'])
    this.used = el('p', { class: 'hint', 'data-costs': '' })
    this.costs = el('div', { hidden: true }, el('h3', {}, costs.title),
      el('div', { class: 'two' }, ...Object.entries(this.fed).map(([name, chart]) => el('div', {}, el('h4', {}, costs[name]), chart.root))), this.used)
    this.table = el('div')
    this.crowd = el('div', { hidden: true }, el('h3', {}, ''), el('div', { class: 'three' }, ...MEASURES.map((name) => el('div', {}, el('h4', {}, words.measures[name]), this.people[name].root))), this.table)
    this.percentile = el('select', { 'data-do': 'percentile', onchange: () => this.curves() }, ...PERCENTILES.map((name) => el('option', { value: name }, name)))
    this.percentile.value = 'p90'
    this.lead = el('p', { class: 'hint' })
    this.byLoad = el('div', { hidden: true }, el('h3', {}, loads.title, ' ', tag(lab.scene, 'simulated')), this.lead,
      el('div', { class: 'row' }, el('label', {}, loads.percentile, this.percentile)),
      el('div', { class: 'three' }, ...MEASURES.map((name) => el('div', {}, el('h4', {}, loads[name]), this.charts[`load-${name}`].root))))
    this.exact = el('div', { class: 'wide' })
    this.ratios = el('div', { hidden: true }, el('h3', {}, words.ratios.title, ' ', tag(lab.scene, 'simulated')), this.charts.ratios.root, this.exact)
    this.root = el('div', {}, this.costs, this.crowd, this.byLoad, this.ratios)
  }

  show() {
    const { figures, words } = this.lab
    const costs = figures?.costs
    this.costs.hidden = !(figures?.reads.length || figures?.steps.length)
    if (!figures) return
    const w = words.costs
    if (!this.costs.hidden) for (const chart of Object.values(this.fed)) this.lab.draw(chart)
    Object.assign(this.used.dataset, { most: costs?.most ?? '' })
    setText(this.used, costs ? fill(w.told, { worst: percent(costs.worst), most: costs.most }) : '')
    this.showRatios(figures.ratios)
  }

  close() {
    for (const chart of [this.fed, this.people, this.charts].flatMap(Object.values)) chart.close()
  }

  simulated({ sim, loads, values }) {
    this.crowd.hidden = !sim
    this.byLoad.hidden = !loads
    if (sim) {
      this.crowd.querySelector('h3').replaceChildren(fill(this.lab.words.table.title, { n: sim.people }), ' ', tag(this.lab.scene, 'simulated'))
      this.table.replaceChildren(...this.exactly(sim))
      for (const name of MEASURES) this.lab.draw(this.people[name], sim.asked)
    }
    Object.assign(this, { told: loads, asked: values })
    if (loads) this.curves()
  }

  exactly(sim) {
    const { words, scene } = this.lab
    const w = words.table
    const all = WAYS.map((name) => sim.arrangements[name])
    const [one, , apart] = all
    const value = (row, what) => all.map((way, index) => el('td', { colspan: 3, class: WAYS[index], 'data-cell': `${WAYS[index]}-${row}`, 'data-value': what(way, index) ?? '' }, this.says(row, way)))
    const rows = MEASURES.map((name) => el('tr', { 'data-row': name }, el('th', { scope: 'row' }, words.measures[name]),
      ...all.flatMap((way, index) => PERCENTILES.map((each) => el('td', { class: WAYS[index], 'data-cell': `${WAYS[index]}-${name}-${each}`, 'data-value': way[name]?.[each] ?? '' }, way[name] ? time(way[name][each]) : '–')))))
    const more = [['words', (way) => way.words], ['waiting', (way) => way.waiting], ['use', (way) => way.read + way.write], ['link', (way) => way.link]]
      .map(([name, what]) => el('tr', { 'data-row': name }, el('th', { scope: 'row' }, w[name]), ...value(name, what)))
    const outside = all.reduce((sum, way) => sum + way.outside, 0)
    const beyond = one.beyond
    const verdict = one.pause && apart.pause ? fill(w.verdict, { before: time(one.pause.p90), after: time(apart.pause.p90), wait_before: time(one.ttft.p90), wait_after: time(apart.ttft.p90) }) : ''
    return [
      el('p', { class: 'hint' }, w.lead),
      el('div', { class: 'wide' }, el('table', { class: 'percentiles', 'data-table': '' },
        el('thead', {}, el('tr', {}, el('th', {}), ...WAYS.map((name) => el('th', { scope: 'col', colspan: 3, class: name }, words.arrangements[name]))),
          el('tr', {}, el('th', {}), ...WAYS.flatMap((name) => PERCENTILES.map((each) => el('th', { class: name }, each))))),
        el('tbody', {}, ...rows, ...more))),
      el('p', { class: 'verdict', 'data-verdict': '' }, verdict),
      ...(outside || beyond ? [el('p', { class: 'hint', 'data-outside': outside }, fill(w.outside, { steps: number(outside), all: number(all.reduce((sum, way) => sum + way.steps, 0)), papers: beyond }))] : []),
    ]
  }

  says(row, way) {
    if (row === 'use') return fill(this.lab.words.table.shares, { read: share(way.read), write: share(way.write) })
    if (row === 'link') return way.link ? percent(way.link) : '–'
    return number(way[row], way[row] < 10 ? 1 : 0)
  }

  curves() {
    const { told, lab } = this
    const each = this.percentile.value
    setText(this.lead, fill(lab.words.loads.lead, { n: told[0].colocated.ttft[each].length }))
    for (const name of MEASURES) lab.draw(this.charts[`load-${name}`], { ...this.asked, load: null, seed: null, pick: each })
  }

  showRatios(ratios) {
    const { words } = this.lab
    const w = words.ratios
    this.ratios.hidden = !ratios
    if (!ratios) return
    const ways = Object.keys(ratios[0].ways)
    const cell = (mix, way, { capacity, ttft, pause }, load) => el('td', { 'data-ratio': `${mix}-${way}`, 'data-value': capacity, 'data-over': String(load > capacity) },
      el('b', {}, percent(capacity)), el('small', {}, load > capacity ? w.over : fill(w.small, { ttft: time(ttft), pause: pause === null ? '–' : time(pause) })))
    this.lab.draw(this.charts.ratios)
    this.exact.replaceChildren(el('p', { class: 'hint' }, fill(w.lead, { load: share(ratios[0].load) })),
      el('table', { class: 'ratios' },
        el('thead', {}, el('tr', {}, el('th', {}, w.people), ...ways.map((way) => el('th', { scope: 'col' }, way === 'colocated' ? w.colocated : words.controls.splits[way])))),
        el('tbody', {}, ...ratios.map(({ mix, load, ways: found }) => el('tr', {}, el('th', { scope: 'row' }, words.controls.mixes[mix]), ...ways.map((way) => cell(mix, way, found[way], load)))))))
  }
}

/** The rules of the simulation, with the numbers used. */
class Proof {
  constructor(lab) {
    this.lab = lab
    this.root = el('ul', { class: 'points', 'data-rules': '' })
  }

  simulated({ sim }) {
    const { proof } = this.lab.words
    const values = sim ? { n: sim.people, seed: sim.asked.seed, chunk: sim.chunk, note: bytes(sim.note), latency: time(sim.latency) } : {}
    Object.assign(this.root.dataset, { seed: values.seed ?? '' })
    this.root.replaceChildren(...(sim ? ['people', 'turns', 'link', 'left', 'sources'] : ['left', 'sources']).map((name) => el('li', {}, fill(proof[name], values))))
  }
}
