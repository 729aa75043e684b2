/**
 * Why two stages: the run on show, prefill beside decode; both under this machine's roofline; where their seconds go;
 * and the race of the same question with and without the notes.
 */
import { el, fill, setText, tag } from '../../scene/dom.js'
import { number } from '../../scene/text.js'
import { Chart } from '../shared/chart.js'
import { Comparison } from './comparison.js'
import { Followed } from '../shared/followed.js'
import { Measuring } from '../shared/measuring.js'
import { Race } from './race.js'
import { batchesOf, joined, peaksOf, roof, sameMachine, si, stagesOf } from './stages_data.js'
import { mountStation, part, stylesheet } from '../shared/station.js'

const CSS = new URL('two_stages.css', import.meta.url).href

const AGAIN = 3000 // milliseconds until it is asked again whether the model is loaded

export const mount = (element, options) => mountStation(element, options, (station) => new TwoStages(station))

class TwoStages {
  constructor(station) {
    this.station = station
    this.options = station.options
    this.words = station.words
    const { words, options } = this
    this.run = new Followed(station, { over: (finished) => this.over(finished), again: true })
    this.desk = { words, scene: options.scene, errors: options.errors, base: options.base ?? '', lang: options.lang, unreachable: words.unreachable }
    this.comparison = new Comparison(this.desk)
    const chart = (name, hears) => new Chart({ name, base: this.desk.base, lang: options.lang, words: words.chart, scene: options.scene, ...hears })
    this.told = el('p', { class: 'told', 'aria-live': 'polite', 'data-roofline': true })
    this.charts = {
      roofline: chart('roofline', { onPoint: (point) => this.tell(point), onDrawn: () => this.tellAgain() }),
      batches: chart('batches'),
      parts: chart('parts'),
    }
    this.calls = el('div', {})
    this.race = new Race(this.desk)
    this.slider = this.slide()
    this.machine = el('p', { class: 'hint', 'data-machine': '' })
    this.peaks = this.measuring('peaks', 'peak')
    this.batches = this.measuring('batches', 'batch')
    this.parts = this.measuring('parts', 'parts')
    this.sheet = stylesheet(CSS)
    const led = (name, ...children) => part(words, name, el('p', {}, words[name].lead), ...children)
    const { roofline, batches, parts } = this.charts
    this.root = el('div', { class: 'body stages' }, this.sheet,
      part(words, 'roofline', el('div', { class: 'row measures' }, this.peaks.root, this.batches.root), roofline.root, this.told, this.slider.root, this.run.line, el('p', {}, words.roofline.lead), this.machine, batches.root),
      led('race', this.race.root),
      led('table', this.comparison.root),
      led('parts', this.parts.root, parts.root, this.calls))
  }

  measuring(name, label) {
    const { words, desk } = this
    return new Measuring({ ...desk, desk, name, label: words.measure[name], again: words.measure[`${name}_again`], onResult: (key, result) => this.found(key, result) })
  }

  async start() {
    await this.sheet.loaded
    await this.run.start()
  }

  close() {
    clearTimeout(this.later)
    Object.values(this.charts).forEach((chart) => chart.close())
    ;[this.peaks, this.batches, this.parts].forEach((one) => one.stop())
    this.race.close()
  }

  async over(finished) {
    const { started, events, api } = this.run
    this.run.ending(finished, events.some((event) => event.type === 'chose'))
    if (!started) return
    this.started = started
    try {
      this.costs = await api.json('/costs')
    } catch (problem) {
      return setText(this.machine, this.station.sentence(problem))
    }
    await this.look()
    this.race.ready(started.settings, this.costs.race)
  }

  /** What is kept of this machine, if its model is loaded. */
  async look() {
    const { words, started } = this
    this.measures = null
    try {
      this.measures = await this.station.ask(`measures?model=${encodeURIComponent(started.facts.model)}`)
    } catch (problem) {
      setText(this.machine, problem.message)
      if (problem.code === 'model_not_ready') this.later = setTimeout(() => this.look(), AGAIN)
    }
    if (this.station.closed) return
    this.here = Boolean(this.measures) && sameMachine(started.facts, this.measures.machine)
    const drawn = this.draw()
    if (this.measures && !this.here) setText(this.machine, fill(words.roofline.elsewhere, { device: started.facts.device_name || started.facts.device, dtype: started.facts.dtype, own: this.measures.machine.device_name, own_dtype: this.measures.machine.dtype }))
    await drawn
  }

  found(name, result) {
    this.measures.results[name] = result
    return this.draw()
  }

  draw() {
    const { measures, costs, here, words } = this
    const { events, summary } = this.run
    this.stages = stagesOf(events, costs)
    const peaks = measures ? peaksOf(measures) : null
    const fitting = here ? peaks : null
    this.comparison.show(this.stages, fitting, summary?.recorded, this.started.cold)
    this.fitting = fitting
    this.slider.limit(costs.curve.length - 1, this.stages.prefill?.tokens ?? costs.prompt)
    const query = { run: this.options.run, model: measures?.model }
    const drawn = Promise.all([this.drawRoofline(), this.charts.batches.show(query), this.charts.parts.show(query)])
    const timed = (stage) => (here ? measures.results[`parts/${costs.prompt}/${stage}`] : undefined)
    this.calls.replaceChildren(...['prefill', 'decode'].filter(timed).map((stage) => el('p', { class: 'hint', 'data-calls': timed(stage).calls, 'data-stage': stage }, this.overhead(stage, timed(stage)))))
    const usable = here && summary?.kept
    this.peaks.plan(measures && (() => measures.plan.map(({ name }) => ({ kind: 'peak', model: measures.model, name }))), Boolean(peaks))
    this.batches.plan(usable && (() => measures.batches.map((batch) => ({ kind: 'batch', run: this.options.run, batch }))), here && batchesOf(measures, costs).length > 0)
    this.parts.plan(usable && (() => ['prefill', 'decode'].map((stage) => ({ kind: 'parts', run: this.options.run, stage }))), Boolean(timed('decode')))
    if (measures && here) this.tellMachine(peaks, words)
    return drawn
  }

  tellMachine(peaks, words) {
    const { machine } = this.measures
    const values = { device: machine.device_name || machine.device, threads: machine.threads, dtype: machine.dtype, torch: machine.torch }
    if (!peaks) return setText(this.machine, fill(words.roofline.unmeasured, values))
    const busy = peaks.busy > 0.1 && fill(words.measuring.busy, { cores: number(peaks.busy, 1) })
    setText(this.machine, joined([fill(words.roofline.machine, {
      ...values, n: peaks.count, compute: si(peaks.compute.rate, 'FLOP/s'), product: peaks.compute.name.replace('product-', '').replaceAll('-', ' × '),
      bandwidth: si(peaks.bandwidth.rate, 'B/s'), read: words.measure.reads[peaks.bandwidth.name], when: new Date(peaks.compute.taken).toLocaleString(this.options.lang === 'zh' ? 'zh-CN' : 'en-GB', { dateStyle: 'medium', timeStyle: 'short' }),
    }), busy]))
  }

  drawRoofline() {
    return this.charts.roofline.show({ run: this.options.run, model: this.measures?.model, tokens: this.fitting ? this.slider.guess().tokens : '' })
  }

  /** The sentence of the point that is looked at. */
  tell({ meta, text, data, x, y }) {
    this.chosen = { meta, data }
    setText(this.told, text)
    Object.assign(this.told.dataset, { name: meta === 'batch' ? `batch-${data}` : meta, x, y })
  }

  /** After the chart was drawn anew: of the same point, or of the first of the run's own. */
  tellAgain() {
    const { roofline } = this.charts
    const points = roofline.points().map(([k, index]) => roofline.point(k, index))
    const same = points.find(({ meta, data }) => meta === this.chosen?.meta && data === this.chosen?.data)
    const point = same ?? points.find(({ meta }) => meta === 'prefill') ?? points[0]
    if (point) this.tell(point)
  }

  overhead(stage, { calls, seconds, timed, busy }) {
    const { words } = this
    const said = fill(words.parts.calls, { calls: number(calls), each: number((1e6 * seconds) / calls, 0), plain: number(1000 * seconds, 1), timed: number(1000 * timed, 1) })
    return joined([`${words.stage[stage]}:`, said, busy > 0.1 && fill(words.measuring.busy, { cores: number(busy, 1) })])
  }

  /** Another prompt length: where its prefill may stand at best. */
  slide() {
    const { words } = this
    const input = el('input', { type: 'range', min: 0, max: 0, value: 0, 'aria-label': words.roofline.slider, 'data-do': 'length' })
    const told = el('p', { class: 'hint', 'data-guess': '' })
    const guess = () => this.costs.curve[Number(input.value)]
    const tell = () => {
      const one = guess()
      if (!this.fitting) return setText(told, words.roofline.slider_later)
      const rate = roof(this.fitting, one.intensity)
      setText(told, fill(words.roofline.guess, { n: number(one.tokens), flops: si(one.total, 'FLOP'), bytes: si(one.moved, 'B'), intensity: one.intensity.toPrecision(3), rate: si(rate, 'FLOP/s'), seconds: number((1000 * one.total) / rate, 1) }))
      Object.assign(told.dataset, { tokens: one.tokens, intensity: one.intensity, rate })
    }
    input.addEventListener('input', () => {
      tell()
      this.drawRoofline()
    })
    return {
      root: el('div', { class: 'slide' }, el('label', {}, words.roofline.slider, input, ' ', tag(this.options.scene, 'computed')), told),
      guess,
      limit: (last, tokens) => {
        if (Number(input.max) !== last) {
          input.max = last
          input.value = this.costs.curve.findIndex((one) => one.tokens >= tokens)
        }
        tell()
      },
    }
  }
}
