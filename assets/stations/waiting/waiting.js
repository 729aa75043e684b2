/**
 * Waiting: how long the first word takes and how fast the words then come, on this machine, against the length of the
 * paper; what that makes of a day's work; and what it feels like.
 */
import { el, fill, setText, tag } from '../../scene/dom.js'
import { number } from '../../scene/text.js'
import { Curves } from '../shared/curves.js'
import { Feel } from './feel.js'
import { Followed } from '../shared/followed.js'
import { Scenarios } from './scenarios.js'
import { sameMachine } from '../two_stages/stages_data.js'
import { loaded, mountStation, part, stylesheet } from '../shared/station.js'
import { at, Sweep, waitsOf } from './sweep.js'

const CSS = new URL('../two_stages/two_stages.css', import.meta.url).href
const AGAIN = 3000 // milliseconds until it is asked again whether the model is loaded
const GOOD_START = { from: 1, to: 3 } // seconds to the first word for a question about a long document
const GOOD_PACE = { from: 50, to: 100 } // milliseconds a word in a chat
const WORDS = 0.75 // of an English text per token, a rule of thumb
const READING = [175, 300] // words a minute that most adults read silently (Brysbaert 2019)

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
    const chart = (name) => new Curves({ name, label: words.curves[name], across: words.curves.across, up: words.curves[`${name}_axis`], high: 0.5 })
    this.charts = { ttft: chart('ttft'), tpot: chart('tpot') }
    this.fits = { ttft: el('p', { class: 'hint', 'data-fit': 'ttft' }), tpot: el('p', { class: 'hint', 'data-fit': 'tpot' }) }
    this.table = el('details', {}, el('summary', {}, words.curves.figures), el('div', { class: 'wide' }, el('table', { 'data-waits': '' })))
    this.scenarios = new Scenarios(this.desk)
    this.feel = new Feel(this.desk)
    this.sheet = stylesheet(CSS)
    const led = (name, ...children) => part(words, name, el('p', {}, words[name].lead), ...children)
    const side = (name) => el('div', {}, el('h3', {}, words.curves[name], ' ', tag(options.scene, 'measured')), this.charts[name].root, this.fits[name])
    this.root = el('div', { class: 'body stages waiting' }, this.sheet, this.run.line,
      led('curves', this.sweep.root, this.machine, el('div', { class: 'two' }, side('ttft'), side('tpot')), el('p', { class: 'hint' }, words.curves.bands), this.table),
      led('scenarios', this.scenarios.root),
      led('feel', this.feel.root))
  }

  async start() {
    await loaded(this.sheet)
    this.resize = () => Object.values(this.charts).forEach((chart) => chart.draw())
    addEventListener('resize', this.resize)
    await this.look()
    this.run.start() // the page is ready without it
  }

  close() {
    clearTimeout(this.later)
    removeEventListener('resize', this.resize)
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
    this.own = { tokens: started.prompt.length, ttft, tpot }
    Object.assign(line.dataset, { ttft, tpot: tpot ?? '' })
    this.run.ending(finished, true, { n: started.prompt.length, ttft: number(1000 * ttft, 0), tpot: tpot === null ? words.none : `${number(1000 * tpot, 0)} ms` })
    this.draw()
  }

  async look() {
    try {
      this.measures = await this.station.ask('measures')
    } catch (problem) {
      setText(this.machine, problem.message)
      if (problem.code === 'model_not_ready') this.later = setTimeout(() => this.look(), AGAIN)
      return this.draw()
    }
    this.draw()
  }

  draw() {
    const { measures, words } = this
    const waits = waitsOf(measures)
    const fits = measures?.fits ?? {}
    this.sweep.plan(measures, waits)
    if (measures) {
      const { machine } = measures
      setText(this.machine, fill(words.curves.machine, { ...machine, device: machine.device_name || machine.device }))
    }
    const own = this.own && measures && this.started && sameMachine(this.started.facts, measures.machine) ? this.own : null
    this.curve('ttft', waits.map((wait) => [wait.prompt, wait.ttft]), fits.ttft, own && [own.tokens, own.ttft], 1,
      [{ name: 'good', label: words.curves.good_start, ...GOOD_START }])
    const reading = READING.map((pace) => 60_000 / (pace / WORDS)).sort((a, b) => a - b)
    this.curve('tpot', waits.filter((wait) => wait.middle !== null).map((wait) => [mean(wait.contexts), wait.middle]), fits.tpot,
      own?.tpot ? [own.tokens, own.tpot] : null, 1000,
      [{ name: 'good', label: words.curves.good_pace, ...GOOD_PACE }, { name: 'reading', label: words.curves.reading, from: reading[0], to: reading[1] }])
    this.figures(waits, fits)
    this.scenarios.show(fits, waits, measures?.context ?? 0)
    this.feel.own(fits, waits)
  }

  curve(name, points, fit, own, unit, bands) {
    const scaled = (point) => [point[0], unit * point[1]]
    const series = [{ name: `${name}-points`, mark: name === 'ttft' ? 'prefill' : 'decode', points: points.map(scaled), line: false }]
    if (fit) {
      const far = Math.max(...points.map(([n]) => n))
      const dense = Array.from({ length: 61 }, (_, step) => (far * step) / 60).filter((n) => n >= points[0][0])
      series.push({ name: `${name}-fit`, mark: 'fit', points: dense.map((n) => [n, unit * Math.max(0, at(fit, n))]), dots: false })
    }
    if (own) series.push({ name: `${name}-own`, label: this.words.curves.own, mark: 'own', points: [scaled(own)], line: false })
    this.charts[name].show(series, bands)
    const values = fit && { a: number(1000 * fit.a, 1), b: signed(1e6 * fit.b), c: signed(1e9 * fit.c), spread: number(1000 * fit.spread, 1) }
    setText(this.fits[name], fit ? fill(this.words.curves.fit, values) : this.words.curves.no_fit)
    Object.assign(this.fits[name].dataset, fit ? { a: fit.a, b: fit.b, c: fit.c } : {})
  }

  figures(waits, fits) {
    const { words } = this
    const rest = (fit, index) => (fit ? `${fit.residuals[index] >= 0 ? '+' : '−'}${number(1000 * Math.abs(fit.residuals[index]), 1)}` : '–')
    const paced = waits.filter((wait) => wait.middle !== null)
    const rows = waits.map((wait, index) => el('tr', { 'data-wait': wait.prompt, 'data-run': wait.run, 'data-ttft': wait.ttft, 'data-tpot': wait.tpot ?? '' },
      ...[number(wait.prompt), number(1000 * wait.ttft, 0), rest(fits.ttft, index), wait.middle === null ? '–' : number(1000 * wait.middle, 1),
        wait.middle === null ? '–' : rest(fits.tpot, paced.indexOf(wait)), wait.together > 1 ? String(wait.together) : '–', new Date(wait.taken).toLocaleString(this.options.lang === 'zh' ? 'zh-CN' : 'en-GB', { dateStyle: 'short', timeStyle: 'short' })].map((text) => el('td', {}, text))))
    this.table.querySelector('table').replaceChildren(
      el('thead', {}, el('tr', {}, ...words.curves.columns.map((name) => el('th', { scope: 'col' }, name)))), el('tbody', {}, ...rows))
    this.table.hidden = !waits.length
  }
}

const signed = (value) => `${value < 0 ? '−' : '+'} ${number(Math.abs(value), 1)}`
const mean = (list) => list.reduce((sum, value) => sum + value, 0) / list.length
