/**
 * Why two stages: the run on show, prefill beside decode; both under this machine's roofline; where their seconds go;
 * and the race of the same question with and without the notes.
 */
import { el, fill, setText, tag } from '../../scene/dom.js'
import { number } from '../../scene/text.js'
import { Breakdown } from './breakdown.js'
import { Comparison } from './comparison.js'
import { Followed } from '../shared/followed.js'
import { Measuring } from '../shared/measuring.js'
import { Race } from './race.js'
import { Roofline } from './roofline.js'
import { batchesOf, joined, peaksOf, roof, sameMachine, si, stagesOf } from './stages_data.js'
import { loaded, mountStation, part, stylesheet } from '../shared/station.js'

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
    this.roofline = new Roofline(words)
    this.breakdown = new Breakdown(this.desk)
    this.race = new Race(this.desk)
    this.slider = this.slide()
    this.machine = el('p', { class: 'hint', 'data-machine': '' })
    this.peaks = this.measuring('peaks', 'peak')
    this.batches = this.measuring('batches', 'batch')
    this.parts = this.measuring('parts', 'parts')
    this.sheet = stylesheet(CSS)
    const led = (name, ...children) => part(words, name, el('p', {}, words[name].lead), ...children)
    this.root = el('div', { class: 'body stages' }, this.sheet, this.run.line,
      led('table', this.comparison.root),
      led('roofline', el('div', { class: 'row measures' }, this.peaks.root, this.batches.root), this.roofline.root, this.slider.root, this.machine),
      led('parts', this.parts.root, this.breakdown.root),
      led('race', this.race.root))
  }

  measuring(name, label) {
    const { words, desk } = this
    return new Measuring({ ...desk, desk, name, label: words.measure[name], again: words.measure[`${name}_again`], onResult: (key, result) => this.found(key, result) })
  }

  async start() {
    await loaded(this.sheet)
    this.resize = () => [this.roofline, this.race.clocks, this.race.work].forEach((plot) => plot.draw())
    addEventListener('resize', this.resize)
    await this.run.start()
  }

  close() {
    clearTimeout(this.later)
    removeEventListener('resize', this.resize)
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
    this.draw()
    if (this.measures && !this.here) setText(this.machine, fill(words.roofline.elsewhere, { device: started.facts.device_name || started.facts.device, dtype: started.facts.dtype, own: this.measures.machine.device_name, own_dtype: this.measures.machine.dtype }))
  }

  found(name, result) {
    this.measures.results[name] = result
    this.draw()
  }

  draw() {
    const { measures, costs, here, words } = this
    const { events, summary } = this.run
    this.stages = stagesOf(events, costs)
    const peaks = measures ? peaksOf(measures) : null
    const fitting = here ? peaks : null
    this.comparison.show(this.stages, fitting, summary?.recorded, this.started.cold)
    this.fitting = fitting
    this.drawRoofline()
    const timed = (stage) => (here ? measures.results[`parts/${costs.prompt}/${stage}`] : undefined)
    this.breakdown.show(this.stages, { prefill: timed('prefill'), decode: timed('decode') })
    const usable = here && summary?.kept
    this.peaks.plan(measures && (() => measures.plan.map(({ name }) => ({ kind: 'peak', model: measures.model, name }))), Boolean(peaks))
    this.batches.plan(usable && (() => measures.batches.map((batch) => ({ kind: 'batch', run: this.options.run, batch }))), here && batchesOf(measures, costs).length > 0)
    this.parts.plan(usable && (() => ['prefill', 'decode'].map((stage) => ({ kind: 'parts', run: this.options.run, stage }))), Boolean(timed('decode')))
    if (measures && here) this.tellMachine(peaks, words)
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
    const { stages, words, measures, costs, here, fitting } = this
    const points = []
    if (stages.prefill) points.push({ ...stages.prefill, name: 'prefill', mark: 'prefill', label: `${words.stage.prefill} · ${stages.prefill.tokens}`, long: fill(words.roofline.prefill, { n: stages.prefill.tokens }), place: { dx: -12, dy: -10, anchor: 'end' } })
    if (stages.decode) points.push({ ...stages.decode, name: 'decode', mark: 'decode', label: words.stage.decode, long: fill(words.roofline.decode, { n: stages.decode.passes }), place: { dx: -13, dy: 5, anchor: 'end' } })
    for (const point of points) point.evidence = this.evidence(point)
    for (const batch of here ? batchesOf(measures, costs) : []) {
      const more = fill(words.roofline.together, { rate: number(batch.batch / batch.seconds, 0), one: number(1000 * batch.seconds, 0) })
      const evidence = batch.busy > 0.1 ? fill(words.measuring.busy, { cores: number(batch.busy, 1) }) : ''
      points.push({ ...batch, evidence, name: `batch-${batch.batch}`, mark: 'batch', label: `× ${batch.batch}`, long: fill(words.roofline.batch, { n: batch.batch }), place: { dx: 9, dy: 16, anchor: 'start' }, more })
    }
    this.slider.limit(costs.curve.length - 1, stages.prefill?.tokens ?? costs.prompt)
    this.roofline.show(points, fitting, fitting ? this.slider.guess() : null)
  }

  /** What is known of the time that no roof explains: how many operations it is spread over. */
  evidence({ name, seconds, flops, intensity }) {
    const { words, measures, costs, here, fitting } = this
    const timed = here ? measures.results[`parts/${costs.prompt}/${name}`] : null
    if (!timed || !fitting) return words.roofline.ask
    const explained = flops / roof(fitting, intensity)
    const rest = seconds - explained
    return fill(words.roofline.launches, { explained: number(1000 * explained, 1), seconds: number(1000 * seconds, 1), rest: number(1000 * rest, 1), calls: number(timed.calls), each: number((1e6 * rest) / timed.calls, 0) })
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
    input.addEventListener('input', () => this.drawRoofline())
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
