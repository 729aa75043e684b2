// @ts-check
/**
 * The state at a moment, folded from the events up to it: the twin of `state_at` and `advance` in engine/trace/state.py,
 * field for field. Both are tested against tests/fixtures/states.json; everything drawn comes from this state.
 */

/**
 * @import {Chose, Decoded, Facts, Finished, Forgot, KV, Layer, Prefilled, Queued, Reused, Started, TraceEvent, Wrote} from './events.js'
 *
 * @typedef {object} State
 * @property {'idle' | 'queued' | 'prefill' | 'decode' | 'done'} phase
 * @property {number} at seconds of the newest event
 * @property {number} ahead runs before this one
 * @property {number} prompt tokens of the paper
 * @property {number} reused positions taken over from another run
 * @property {number} kept words that came with them
 * @property {number} read positions of the paper whose pass is over
 * @property {number} layers layers done of the pass at work
 * @property {number} chunk_start
 * @property {number} chunk_stop
 * @property {number} columns
 * @property {number} kv_bytes
 * @property {number} kv_allocated
 * @property {number} forgotten
 * @property {number} chosen
 * @property {number} decoded
 * @property {number} passes
 * @property {number} offered
 * @property {number} accepted
 * @property {number} held
 * @property {string} text
 * @property {number | null} ttft seconds
 * @property {number | null} tpot seconds
 * @property {Finished['reason'] | ''} reason
 */

/** @type {Readonly<State>} */
export const START = Object.freeze({
  phase: 'idle',
  at: 0,
  ahead: 0,
  prompt: 0,
  reused: 0,
  kept: 0,
  read: 0,
  layers: 0,
  chunk_start: 0,
  chunk_stop: 0,
  columns: 0,
  kv_bytes: 0,
  kv_allocated: 0,
  forgotten: 0,
  chosen: 0,
  decoded: 0,
  passes: 0,
  offered: 0,
  accepted: 0,
  held: 0,
  text: '',
  ttft: null,
  tpot: null,
  reason: '',
})

/** @param {{kv: KV}} event */
const kv = ({ kv }) => ({ columns: kv.length, kv_bytes: kv.bytes, kv_allocated: kv.allocated })

/** @type {{[E in TraceEvent as E['type']]: (state: State, event: E) => Partial<State>}} */
const after = {
  queued: (state, event) => ({ phase: 'queued', ahead: event.ahead }),
  started: (state, event) => ({ phase: 'prefill', ahead: 0, prompt: event.prompt.length }),
  reused: (state, event) => {
    const kept = event.written.length
    return {
      phase: kept ? 'decode' : state.phase,
      reused: event.stop,
      kept,
      read: Math.min(event.stop, state.prompt),
      chosen: kept,
      decoded: kept,
      held: event.held,
      text: event.text,
      ...kv(event),
    }
  },
  layer: (state, event) => ({ layers: event.index + 1, chunk_start: event.start, chunk_stop: event.stop }),
  prefilled: (state, event) => ({
    read: event.stop,
    layers: 0,
    chunk_start: event.stop,
    chunk_stop: event.stop,
    ...kv(event),
  }),
  chose: (state, event) => {
    const chosen = state.chosen + 1
    const own = chosen - state.kept
    const ttft = state.ttft ?? event.at
    return {
      phase: 'decode',
      chosen,
      held: state.held + (event.token.special ? 0 : 1),
      ttft,
      tpot: own > 1 ? (event.at - ttft) / (own - 1) : null,
    }
  },
  decoded: (state, event) => ({
    decoded: state.decoded + 1 + event.accepted,
    passes: state.passes + 1,
    offered: state.offered + event.drafts.length,
    accepted: state.accepted + event.accepted,
    ...kv(event),
  }),
  forgot: (state, event) => ({ ...kv(event), forgotten: state.forgotten + event.positions.length }),
  wrote: (state, event) => ({ text: state.text + event.text, held: 0 }),
  finished: (state, event) => ({ phase: 'done', reason: event.reason }),
}

/**
 * The state after one more event.
 *
 * @param {State} state
 * @param {TraceEvent} event
 * @returns {State}
 */
export function advance(state, event) {
  const change = /** @type {(state: State, event: TraceEvent) => Partial<State>} */ (after[event.type])
  return { ...state, ...change(state, event), at: event.at }
}

/**
 * The state after the first `step` events (all of them when left out).
 *
 * @param {TraceEvent[]} events
 */
export function stateAt(events, step = events.length) {
  return events.slice(0, step).reduce(advance, START)
}
