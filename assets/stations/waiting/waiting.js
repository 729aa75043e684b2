/**
 * Waiting: how long the first word takes and how fast the words then come, on this machine, against the length of the
 * paper; what that makes of a day's work; and what it feels like.
 */
import { el, fill, setText } from '../../scene/dom.js'
import { number } from '../../scene/text.js'
import { Chart } from '../shared/chart.js'
import { Feel } from './feel.js'
import { Followed } from '../shared/followed.js'
import { Scenarios } from './scenarios.js'
import { loaded, mountStation, part, stylesheet } from '../shared/station.js'
import { Sweep, waitsOf } from './sweep.js'

const CSS = new URL('../two_stages/two_stages.css', import.meta.url).href
const AGAIN = 3000 // milliseconds until it is asked again whether the model is loaded

export const mount = (element, options) => mountStation(element, options, (station) => new Waiting(station))

class Waiting {
  constructor(station) {
    this.station = station
    this.options = station.options
    this.words = station.words
    const { words, options } = this
    this.run = new Followed(station, { over: (finished) => this.over(finished) })
    this.desk = { words, scene: options.scene, errors: options.errors, base: options.base ?? '', lang: options.lang, unreachable: words.unreachable }
    this.sweep = new Sweep({ ...this.desk, text: options.text, onKept: () => this.look() })
    this.machine = el('p', { class: 'hint', 'data-machine': '' })
    const chart = (name) => new Chart({ name: `waiting-${name}`, base: this.desk.base, lang: options.lang, words: words.chart, scene: options.scene })
    this.charts = { ttft: chart('ttft'), tpot: chart('tpot') }
    this.fits = { ttft: el('p', { class: 'hint', 'data-fit': 'ttft' }), tpot: el('p', { class: 'hint', 'data-fit': 'tpot' }) }
    this.table = el('details', {}, el('summary', {}, words.curves.figures), el('div', { class: 'wide' }, el('table', { 'data-waits': '' })))
    this.scenarios = new Scenarios(this.desk)
    this.feel = new Feel(this.desk)
    this.sheet = stylesheet(CSS)
    const led = (name, ...children) => part(words, name, el('p', {}, words[name].lead), ...children)
    const side = (name) => el('div', {}, el('h3', {}, words.curves[name]), this.charts[name].root)
    this.root = el('div', { class: 'body stages waiting' }, this.sheet,
      part(words, 'curves', this.sweep.root, el('div', { class: 'two' }, side('ttft'), side('tpot')), this.run.line, el('p', {}, words.curves.lead), this.fits.ttft, this.fits.tpot, this.machine, el('p', { class: 'hint' }, words.curves.bands), this.table),
      led('scenarios', this.scenarios.root),
      led('feel', this.feel.root))
  }

  async start() {
    await loaded(this.sheet)
    await this.look()
    this.run.start() // the page is ready without it
  }

  close() {
    clearTimeout(this.later)
    Object.values(this.charts).forEach((chart) => chart.close())
    this.sweep.stop()
    this.feel.close()
  }

  /** The run on show made somebody wait, too: what its own trace says of that. */
  over(finished) {
    const { words } = this
    const { started, events, line } = this.run
    const chose = events.filter((event) => event.type === 'chose')
    if (!chose.length) return this.run.ending(finished, false)
    const [ttft, tpot] = [chose[0].at, chose.length > 1 ? (chose.at(-1).at - chose[0].at) / (chose.length - 1) : null]
    this.started = started
    Object.assign(line.dataset, { ttft, tpot: tpot ?? '' })
    this.run.ending(finished, true, { n: started.prompt.length, ttft: number(1000 * ttft, 0), tpot: tpot === null ? words.none : `${number(1000 * tpot, 0)} ms` })
    this.draw()
  }

  async look() {
    const told = await this.station.ask('measures').catch((problem) => ({ problem }))
    this.measures = told.problem ? null : told
    if (told.problem) setText(this.machine, told.problem.message)
    if (told.problem?.code === 'model_not_ready') this.later = setTimeout(() => this.look(), AGAIN)
    await this.draw()
  }

  /** Both charts, and what hangs on their curves: the table, a day's work, the pace to feel. */
  async draw() {
    const { measures, words, options } = this
    this.sweep.plan(measures, waitsOf(measures))
    if (measures) {
      const { machine } = measures
      setText(this.machine, fill(words.curves.machine, { ...machine, device: machine.device_name || machine.device }))
    }
    const query = { run: this.started ? options.run : '', model: measures?.model }
    const drawn = Promise.all(Object.values(this.charts).map((chart) => chart.show(query)))
    const turn = (this.turn = (this.turn ?? 0) + 1)
    const found = await Promise.all(Object.values(this.charts).map((chart) => chart.rows(query))).catch(() => null)
    if (!found || this.station.closed || turn !== this.turn) return
    const [ttft, tpot] = found
    const fits = { ttft: ttft.about.fit, tpot: tpot.about.fit }
    const waits = ttft.rows.filter((row) => row.kind === 'point').map((row) => ({ ...row, prompt: row.tokens }))
    for (const [name, fit] of Object.entries(fits)) this.tellFit(name, fit)
    this.figures(waits, tpot.rows, measures)
    this.scenarios.show(fits, waits, measures?.context ?? 0)
    this.feel.own(fits, waits)
    await drawn
  }

  tellFit(name, fit) {
    const values = fit && { a: number(1000 * fit.a, 1), b: signed(1e6 * fit.b), c: signed(1e9 * fit.c), spread: number(1000 * fit.spread, 1) }
    setText(this.fits[name], fit ? fill(this.words.curves.fit, values) : this.words.curves.no_fit)
    Object.assign(this.fits[name].dataset, fit ? { a: fit.a, b: fit.b, c: fit.c } : {})
  }

  figures(waits, paced, measures) {
    const { words } = this
    const off = (row) => (row?.residual == null ? '–' : `${row.residual >= 0 ? '+' : '−'}${number(1000 * Math.abs(row.residual), 1)}`)
    const together = Object.fromEntries(waitsOf(measures).map((wait) => [wait.run, wait.together]))
    const rows = waits.map((wait) => {
      const pace = paced.find((row) => row.run === wait.run && row.kind === 'point')
      const cells = [number(wait.prompt), number(1000 * wait.seconds, 0), off(wait), pace ? number(1000 * pace.seconds, 1) : '–', off(pace),
        together[wait.run] > 1 ? String(together[wait.run]) : '–', new Date(wait.taken).toLocaleString(this.options.lang === 'zh' ? 'zh-CN' : 'en-GB', { dateStyle: 'short', timeStyle: 'short' })]
      return el('tr', { 'data-wait': wait.prompt, 'data-run': wait.run, 'data-ttft': wait.seconds, 'data-pace': pace?.seconds ?? '' }, ...cells.map((text) => el('td', {}, text)))
    })
    this.table.querySelector('table').replaceChildren(
      el('thead', {}, el('tr', {}, ...words.curves.columns.map((name) => el('th', { scope: 'col' }, name)))), el('tbody', {}, ...rows))
    this.table.hidden = !waits.length
  }
}

const signed = (value) => `${value < 0 ? '−' : '+'} ${number(Math.abs(value), 1)}`
