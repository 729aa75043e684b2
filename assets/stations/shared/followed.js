// @ts-check
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

/**
 * @import {Connection, Refusal} from '../../scene/source.js'
 * @import {Finished, Settings, Started, TraceEvent} from '../../scene/trace/events.js'
 * @import {Options, Station} from './station.js'
 *
 * @typedef {Record<'waiting' | 'running' | 'queued' | 'failed' | 'stopped' | 'stopped_early' | Connection, string> &
 *   Partial<Record<'kept' | 'recorded' | 'saved' | 'own' | 'again', string>>} StateWords
 * @typedef {Options & {words: Options['words'] & {state: StateWords}}} FollowedOptions
 * @typedef {{kept?: boolean, recorded?: boolean, title?: string, state?: string}} Summary of a run (docs/api.md)
 *
 * @typedef {object} Hears
 * @property {(events: TraceEvent[]) => void} [take]
 * @property {(finished: Finished, summary: Summary | null) => unknown} over
 * @property {boolean} [again]
 */

export class Followed {
  /** @param {Station<FollowedOptions>} station @param {Hears} hears */
  constructor(station, hears) {
    this.station = station
    this.hears = hears
    this.words = station.words
    /** @type {TraceEvent[]} */
    this.events = []
    /** @type {Summary | null} */
    this.summary = null
    const { base = '', run, lang } = station.options
    this.api = new RunApi(base, run, lang)
    this.line = el('p', { class: 'state', 'data-state': 'waiting', 'aria-live': 'polite' }, this.words.state.waiting)
  }

  get started() {
    return this.events.find((event) => event.type === 'started')
  }

  /** Until the run's events so far are here; of a run that is over, until it is shown. */
  start() {
    return new Promise((/** @type {(value: void) => void} */ resolve) => {
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

  /** @param {string} state @param {(Node | string)[]} content */
  say(state, ...content) {
    this.line.dataset.state = state
    this.line.replaceChildren(...content)
  }

  /** @param {TraceEvent[]} events */
  async take(events) {
    const { words, hears } = this
    this.events.push(...events)
    hears.take?.(events)
    const last = events.at(-1)
    if (last?.type === 'queued') return this.say('waiting', fill(words.state.queued, { n: last.ahead }))
    if (last?.type !== 'finished') return this.say('running', words.state.running)
    this.summary = await this.api.json().catch(() => null)
    if (!this.station.closed) await this.hears.over(last, this.summary)
  }

  /** How the run ended, and what is left of it. `shown`: whether there is anything to show; `values` fill the sentence. @param {Finished} finished @param {boolean} shown */
  ending({ reason, code, values: gaps }, shown, values = {}) {
    const { words, summary, hears } = this
    if (reason === 'error' || reason === 'out_of_memory') {
      const why = fill(this.station.options.errors[code] ?? '', Object.fromEntries(gaps ?? []))
      return this.say('failed', fill(words.state.failed, { why }))
    }
    if (!shown) return this.say('stopped', words.state.stopped_early)
    const stopped = reason === 'stopped' || reason === 'timeout'
    const kind = summary?.kept ? 'kept' : summary?.recorded ? 'recorded' : 'saved'
    const left = fill(words.state[kind] ?? words.state.own ?? '', { title: summary?.title ?? '', ...values })
    const told = stopped ? [words.state.stopped, ' ', left] : [left]
    if (!hears.again || summary?.kept || !words.state.again) return this.say(stopped ? 'stopped' : 'finished', ...told)
    const again = button(words.state.again, () => this.again(), { class: 'pill main', 'data-do': 'again' })
    this.say(stopped ? 'stopped' : 'finished', ...told, ' ', again)
  }

  /**
   * The same paper once more, here, or another one: its notes are kept, so everything of it can be looked at.
   *
   * @param {Settings | undefined} settings
   * @param {HTMLElement} beside
   */
  async again(settings = this.started?.settings, beside = this.line) {
    try {
      /** @type {{id: string}} */
      const { id } = await this.station.ask('runs', { ...settings, fork: null, owner: owner(), keep: true })
      this.station.options.onRun(id)
    } catch (problem) {
      beside.append(' ', el('span', { class: 'trouble' }, /** @type {Refusal} */ (problem).message))
    }
  }
}
