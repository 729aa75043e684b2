// @ts-check
/** A run that a station starts by itself and waits for: the paper is really sat. */
import { owner } from '../../scene/compose/compose.js'
import { fill } from '../../scene/dom.js'
import { ask, ServiceSource } from '../../scene/source.js'

/**
 * @import {Settings, TraceEvent} from '../../scene/trace/events.js'
 *
 * @typedef {{base: string, lang: string, errors: Record<string, string>}} Desk
 */

/**
 * A promise of {id, events, text, ids} of a finished run with `settings`. Throws `{message}` when it is refused or
 * broke off; `onStart(stop)` is told how to leave it.
 *
 * @param {Desk} desk
 * @param {Partial<Settings>} settings
 * @param {(stop: () => void) => void} onStart
 */
export async function sit(desk, settings, onStart = () => {}) {
  /** @type {{id: string}} */
  const { id } = await ask(desk.base, 'runs', desk.lang, { ...settings, owner: owner(), keep: true })
  /** @type {TraceEvent[]} */
  const events = []
  await new Promise((/** @type {(value: void) => void} */ resolve, reject) => {
    const source = new ServiceSource(desk.base, id)
    onStart(source.events(0, (more) => { events.push(...more) }, resolve, (state) => state === 'refused' && reject({})))
  })
  const finished = events.find((event) => event.type === 'finished')
  const chose = events.some((event) => event.type === 'chose')
  if (finished?.code || !chose) {
    throw { message: finished?.code ? fill(desk.errors[finished.code] ?? '', Object.fromEntries(finished.values)) : '' }
  }
  return { id, events, ...said(events) }
}

/** What a run's events say: the answer's text and its tokens' ids. @param {TraceEvent[]} events */
export function said(events) {
  return {
    text: events.filter((event) => event.type === 'wrote').map((event) => event.text).join(''),
    ids: events.filter((event) => event.type === 'chose').map((event) => event.token.id),
  }
}
