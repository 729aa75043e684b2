// @ts-check
/**
 * From ids to characters: a pure fold of a run's events. After each chosen token
 *
 *   token     the token;  at  when it was chosen
 *   held      its own and earlier bytes that are no whole character yet
 *   released  the text that the engine's decoder handed out for it (`wrote`); often empty
 *   text      everything handed out so far: what the person sees
 *   waiting   whole characters that are kept back all the same, because they may begin the stop string
 *   naive     every token's bytes decoded alone and joined, as a program without patience does
 *
 * `end` is null while the run goes on; then {released, text}: what came out when nothing more was to come.
 */
import { bytesOf } from '../../scene/trace/norms.js'

/**
 * @import {Token, TraceEvent} from '../../scene/trace/events.js'
 *
 * @typedef {object} Step
 * @property {Token} token
 * @property {number} at
 * @property {Uint8Array} held
 * @property {string} naive
 * @property {string} whole every character that is whole by then
 * @property {string} released
 * @property {string} text
 * @property {string} waiting
 */

/** @param {TraceEvent[]} events */
export function answerOf(events) {
  /** @type {Step[]} */
  const steps = []
  const patient = new TextDecoder('utf-8', { ignoreBOM: true })
  let whole = ''
  /** @type {Uint8Array} */
  let held = new Uint8Array()
  let naive = ''
  let finished = false
  for (const event of events) {
    const last = steps[steps.length - 1]
    if (event.type === 'chose') {
      const bytes = event.token.special ? new Uint8Array() : bytesOf(event.token.bytes)
      whole += patient.decode(bytes, { stream: true })
      held = tail(Uint8Array.of(...held, ...bytes))
      naive += new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
      steps.push({ token: event.token, at: event.at, held, naive, whole, released: '', text: last?.text ?? '', waiting: '' })
    } else if (event.type === 'wrote' && last) {
      last.released += event.text
      last.text += event.text
    } else if (event.type === 'finished') finished = true
  }
  const end = finished ? ending(steps) : null
  for (const step of steps) step.waiting = step.whole.slice(step.text.length)
  return { steps, end }
}

/** The last `wrote` may be what was held to the very end: taken apart from what the last token itself released. @param {Step[]} steps */
function ending(steps) {
  const last = steps[steps.length - 1]
  if (!last) return { released: '', text: '' }
  const { text } = last
  const flushed = text.startsWith(last.whole) ? text.slice(last.whole.length) : ''
  last.released = last.released.slice(0, last.released.length - flushed.length)
  last.text = text.slice(0, text.length - flushed.length)
  return { released: flushed, text }
}

/** The bytes at the end that begin a character and do not finish it. @param {Uint8Array} bytes */
export function tail(bytes) {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]
    if ((byte & 0xc0) === 0x80) continue
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return needed > back ? bytes.slice(bytes.length - back) : new Uint8Array()
  }
  return new Uint8Array()
}
