// @ts-check
/**
 * A run's events, complete or so far, with what drawing needs looked up once: the state after every event, the
 * forward passes of prefill, the decode steps, the words, the steps that read guesses. Nothing is added to what was
 * measured: it is an index.
 */
import { advance, START } from './state.js'
import { bytesOf, Norms } from './norms.js'

/**
 * @import {Candidate, Chose, Decoded, Finished, Forgot, Queued, Reused, Started, TraceEvent} from './events.js'
 * @import {State} from './state.js'
 *
 * @typedef {{a: number, b: number}} Span seconds from and to; `b` is Infinity while it goes on
 * @typedef {Span & {start: number, stop: number, layers: Span[], taken?: boolean}} Pass over prompt positions [start, stop)
 * @typedef {Span & Partial<Decoded> & {position: number, together: number, layers: Span[], taken?: boolean, drafted?: boolean}} Step
 * @typedef {Span & {from: number, drafts: Candidate[], accepted: number, read: number}} Guess
 * @typedef {Chose & {taken?: boolean}} Chosen
 * @typedef {Chosen & {index: number, joined: boolean, drafted: boolean, along: boolean, said?: number}} Word
 */

export class Trace {
  constructor() {
    /** @type {TraceEvent[]} */
    this.events = []
    /** @type {State[]} */
    this.states = [START]
    /** @type {Queued[]} */
    this.waits = []
    /** @type {Started | null} */
    this.started = null
    this.keys = new Norms(0, 0)
    this.values = new Norms(0, 0)
    /** @type {Pass[]} */
    this.passes = []
    /** @type {Step[]} */
    this.steps = []
    /** @type {Word[]} */
    this.words = []
    /** @type {Guess[]} */
    this.guesses = []
    /** @type {Reused | null} */
    this.reused = null
    /** When the notes of a position were let go. @type {Map<number, number>} */
    this.gone = new Map()
    /** @type {Forgot[]} */
    this.forgets = []
    /** @type {Finished | null} */
    this.finished = null
  }

  get facts() {
    return this.started?.facts
  }
  get prompt() {
    return this.started ? this.started.prompt.length : 0
  }
  get layers() {
    return this.started ? this.started.facts.layers : 0
  }
  get last() {
    return this.states[this.states.length - 1]
  }
  /** Seconds of the newest event: the present while a run is live, its end afterwards. */
  get end() {
    return this.last.at
  }
  /** Bytes of K and V that one position takes in one layer. */
  get noteBytes() {
    if (!this.started) return 0
    const { kv_heads, head_size, value_bytes } = this.started.facts
    const { squeezed } = this
    return 2 * kv_heads * (squeezed ? squeezed.codes + squeezed.scales : head_size * value_bytes)
  }
  /** Bytes of one head's K or V where notes are kept squeezed (engine/cache/quantised.py), else null. */
  get squeezed() {
    const dtype = this.started?.settings.keeping?.dtype ?? 'model'
    if (!this.started || dtype === 'model') return null
    const { head_size } = this.started.facts
    const bits = { fp8: 8, int8: 8, int4: 4, int2: 2 }[dtype]
    const groups = Math.ceil(head_size / 64)
    return { codes: Math.ceil((head_size * bits) / 8), scales: groups * (dtype === 'fp8' ? 2 : 4) }
  }
  /** When the prompt's forward passes were over, Infinity before. */
  get read() {
    const pass = this.passes[this.passes.length - 1]
    return pass && pass.stop === this.prompt ? pass.b : Infinity
  }
  /** The text of the answer so far as code points, as the tokens' spans count them. */
  get characters() {
    return Array.from(this.last.text)
  }

  /** Tokens of the prompt that were read behind the notes of another run; 0 where nothing or all was taken over. */
  get rest() {
    return this.reused ? Math.max(0, this.prompt - this.reused.stop) : 0
  }

  /** Seconds of all prefill passes. */
  get reading() {
    return this.passes.reduce((sum, pass) => sum + pass.b - pass.a, 0)
  }

  /** Positions of the prompt whose notes have not been let go at `t`. @param {number} t */
  stillThere(t) {
    let n = this.prompt
    for (const { at, positions } of this.forgets) if (at <= t) n -= positions.filter((one) => one < this.prompt).length
    return n
  }

  /** @param {TraceEvent} event */
  push(event) {
    this.events.push(event)
    this.states.push(advance(this.last, event))
    const look = /** @type {(trace: Trace, event: TraceEvent) => void} */ (index[event.type])
    look(this, event)
  }

  /** The state at `t` seconds. @param {number} t */
  stateAt(t) {
    return this.states[upTo(this.events, t, (event) => event.at)]
  }
}

/**
 * How many of `list`, ordered by `when`, have happened at `t`.
 *
 * @template T
 * @param {T[]} list
 * @param {number} t
 * @param {(one: T) => number} when
 */
export function upTo(list, t, when) {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (when(list[middle]) <= t) low = middle + 1
    else high = middle
  }
  return low
}

/** @type {{[E in TraceEvent as E['type']]: (trace: Trace, event: E) => void}} */
const index = {
  queued(trace, event) {
    trace.waits.push(event)
  },

  started(trace, event) {
    const capacity = event.prompt.length + event.settings.max_new_tokens
    trace.started = event
    trace.keys = new Norms(event.facts.layers, capacity)
    trace.values = new Norms(event.facts.layers, capacity)
  },

  /**
   * Another run's notes and words: a pass and steps that took no time, marked `taken`. The words' own times are another
   * clock's, so they get this one's.
   */
  reused(trace, event) {
    trace.reused = event
    for (const [norms, text] of normsOf(trace, event)) {
      const bytes = bytesOf(text)
      for (let layer = 0; layer < trace.layers; layer++) {
        norms.put(layer, 0, bytes.subarray(layer * event.stop, (layer + 1) * event.stop))
        norms.scale(layer)
      }
    }
    const at = { a: event.at, b: event.at }
    const layers = Array.from({ length: trace.layers }, () => at)
    trace.passes.push({ start: 0, stop: Math.min(event.stop, trace.prompt), ...at, layers, taken: true })
    event.written.forEach((word, i) => {
      /** @type {Chosen} */
      const taken = { ...word, at: event.at, taken: true }
      index.chose(trace, taken)
      trace.steps.push({ position: trace.prompt + i, ...at, layers, together: 1, taken: true })
    })
  },

  layer(trace, event) {
    let pass = trace.passes[trace.passes.length - 1]
    if (!pass || pass.b < Infinity) {
      pass = { start: event.start, stop: event.stop, a: event.at - event.seconds, b: Infinity, layers: [] }
      trace.passes.push(pass)
    }
    pass.layers.push({ a: event.at - event.seconds, b: event.at })
    for (const [norms, text] of normsOf(trace, event)) {
      norms.put(event.index, event.start, bytesOf(text))
      norms.scale(event.index)
    }
  },

  prefilled(trace, event) {
    const pass = trace.passes[trace.passes.length - 1]
    pass.b = event.at
  },

  chose(trace, event) {
    const { token } = event
    const before = trace.words.at(-1)
    // Tokens that are parts of one character are one stroke on the sheet, finished when the character is whole.
    const joined = before !== undefined && !token.special && token.start < before.token.stop
    const index = trace.words.length
    // Of a step that read guesses the first words are those it accepted, then comes one of its own.
    const guess = trace.guesses.at(-1)
    const drafted = guess !== undefined && index < guess.from + guess.accepted
    const along = guess !== undefined && index > guess.from && index <= guess.from + guess.accepted
    trace.words.push({ ...event, index, joined, drafted, along })
  },

  decoded(trace, event) {
    const a = event.at - event.seconds
    let mark = a
    const layers = event.layer_seconds.map((seconds) => ({ a: mark, b: (mark += seconds) }))
    trace.steps.push({ ...event, a, b: event.at, layers })
    if (event.drafts.length) trace.guesses.push({ a, b: event.at, from: trace.words.length, drafts: event.drafts, accepted: event.accepted, read: event.read })
    // Words that were guessed and kept came in the same pass: steps that took no time of their own.
    const over = { a: event.at, b: event.at }
    for (let more = 1; more <= event.accepted; more++)
      trace.steps.push({ ...event, ...over, position: event.position + more, layers: layers.map(() => over), drafted: true })
    const keys = bytesOf(event.key_norms)
    const values = bytesOf(event.value_norms)
    const count = 1 + event.accepted
    for (let layer = 0; layer < trace.layers; layer++) {
      trace.keys.put(layer, event.position, keys.subarray(layer * count, (layer + 1) * count))
      trace.values.put(layer, event.position, values.subarray(layer * count, (layer + 1) * count))
    }
  },

  forgot(trace, event) {
    trace.forgets.push(event)
    for (const position of event.positions) trace.gone.set(position, event.at)
  },

  /** When the newest word's text was on the sheet: in a step that gives several words that counts. */
  wrote(trace, event) {
    const word = trace.words.at(-1)
    if (word) word.said = event.at
  },

  finished(trace, event) {
    trace.finished = event
  },
}

/** The norms an event tells, each with where they go. @param {Trace} trace @param {{key_norms: string, value_norms: string}} event */
function normsOf(trace, event) {
  return /** @type {const} */ ([[trace.keys, event.key_norms], [trace.values, event.value_norms]])
}
