/**
 * The run on show, as a station follows it: its events as they come, a line that tells its state, and at the end what is
 * left of it.
 *
 * `hears`: take(events)? hears each batch before the line tells of it, over(finished) the end, when `summary` is here and
 * `ending` can be told; `again` is true where the line offers to sit the same paper here.
 *
 * [data-state] is waiting, running, finished, stopped, failed, lost or refused.
 */
import { owner } from '../../scene/compose/compose.js'
import { button, el, fill } from '../../scene/dom.js'
import { RunApi } from './api.js'

export class Followed {
  constructor(station, hears) {
    this.station = station
    this.hears = hears
    this.words = station.words
    this.events = []
    const { base = '', run, lang } = station.options
    this.api = new RunApi(base, run, lang)
    this.line = el('p', { class: 'state', 'data-state': 'waiting', 'aria-live': 'polite' }, this.words.state.waiting)
  }

  get started() {
    return this.events.find((event) => event.type === 'started')
  }

  /** Until the run's events so far are here; of a run that is over, until it is shown. */
  start() {
    return new Promise((resolve) => {
      this.station.follow(async (events) => {
        await this.take(events)
        resolve()
      }, (state) => {
        if (state === 'live') return
        this.say(state, this.words.state[state])
        resolve()
      })
    })
  }

  say(state, ...content) {
    this.line.dataset.state = state
    this.line.replaceChildren(...content)
  }

  async take(events) {
    const { words, hears } = this
    this.events.push(...events)
    hears.take?.(events)
    const last = events.at(-1)
    if (last.type === 'queued') return this.say('waiting', fill(words.state.queued, { n: last.ahead }))
    if (last.type !== 'finished') return this.say('running', words.state.running)
    this.summary = await this.api.json().catch(() => null)
    if (!this.station.closed) await this.hears.over(last, this.summary)
  }

  /** How the run ended, and what is left of it. `shown`: whether there is anything to show; `values` fill the sentence. */
  ending({ reason, code, values: gaps }, shown, values = {}) {
    const { words, summary, hears } = this
    if (reason === 'error' || reason === 'out_of_memory') {
      const why = fill(this.station.options.errors[code] ?? '', Object.fromEntries(gaps ?? []))
      return this.say('failed', fill(words.state.failed, { why }))
    }
    if (!shown) return this.say('stopped', words.state.stopped_early)
    const stopped = reason === 'stopped' || reason === 'timeout'
    const kind = summary?.kept ? 'kept' : summary?.recorded ? 'recorded' : 'saved'
    const left = fill(words.state[kind] ?? words.state.own, { title: summary?.title ?? '', ...values })
    const again = hears.again && !summary?.kept && button(words.state.again, () => this.again(), { class: 'pill main', 'data-do': 'again' })
    this.say(stopped ? 'stopped' : 'finished', ...[stopped && words.state.stopped, left, again].filter(Boolean).flatMap((one, at) => (at ? [' ', one] : [one])))
  }

  /** The same paper once more, here, or another one: its notes are kept, so everything of it can be looked at. */
  async again(settings = this.started.settings, beside = this.line) {
    try {
      const { id } = await this.station.ask('runs', { ...settings, fork: null, owner: owner(), keep: true })
      this.station.options.onRun(id)
    } catch (problem) {
      beside.append(' ', el('span', { class: 'trouble' }, problem.message))
    }
  }
}
