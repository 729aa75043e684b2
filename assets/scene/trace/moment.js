// @ts-check
/** What is going on at `t`: a pure function of trace and time. Between two measured marks it goes evenly. */
import { upTo } from './trace.js'

/**
 * @import {State} from './state.js'
 * @import {Guess, Pass, Span, Step, Trace} from './trace.js'
 *
 * @typedef {object} Moment
 * @property {number} t
 * @property {State} state
 * @property {'idle' | 'queued' | 'tokenise' | 'prefill' | 'first' | 'decode' | 'end'} phase
 * @property {Pass | null} pass
 * @property {number} passIndex
 * @property {boolean} reading
 * @property {number} step
 * @property {number} rows
 * @property {number} steps
 * @property {number} words
 * @property {number} ink
 * @property {number} focus
 * @property {(Guess & {judged: boolean}) | null} guess
 */

/** @param {number} t @param {Span} span */
const part = (t, { a, b }) => Math.min(1, Math.max(0, (t - a) / (b - a)))

/**
 * phase   idle · queued · tokenise · prefill · first (the first word is being chosen) · decode · end
 * state   the fold of the events up to t
 * pass    the prefill pass at work or the last one, with `rows`: layers that have its notes, and a fraction
 * reading true while a pass is at work
 * step    the decode step at work (index into trace.steps) or -1, `rows` likewise
 * steps   decode steps that are over
 * words   words chosen; `ink` 0…1 is how much of the newest is on the paper
 * focus   the word whose look is shown, or -1
 * guess   the guessed tokens on show, or null: {drafts, accepted, read, from: index of the first word of their step,
 *         judged: whether it is known what became of them}
 *
 * @param {Trace} trace
 * @param {number} t
 * @returns {Moment}
 */
export function momentAt(trace, t, live = false) {
  const state = trace.stateAt(t)
  const passIndex = upTo(trace.passes, t, (pass) => pass.a) - 1
  const pass = trace.passes[passIndex] ?? null
  /** @type {Moment} */
  const moment = {
    t,
    state,
    phase: phaseOf(trace, state, t),
    pass,
    passIndex,
    reading: pass !== null && t < pass.b && state.phase === 'prefill',
    step: -1,
    rows: pass ? progress(pass.layers, t) : 0,
    steps: state.decoded,
    words: state.chosen,
    ink: live ? 1 : inked(trace, state.chosen - 1, t),
    focus: -1,
    guess: null,
  }
  const next = trace.steps[state.decoded]
  if (next && next.a <= t) {
    moment.step = state.decoded
    moment.rows = progress(next.layers, t)
  }
  moment.focus = focusOf(trace, moment)
  moment.guess = guessOf(trace, moment)
  return moment
}

/** @param {Trace} trace @param {State} state @param {number} t @returns {Moment['phase']} */
function phaseOf(trace, state, t) {
  if (state.phase === 'done') return 'end'
  if (state.phase === 'decode') return 'decode'
  if (state.phase === 'prefill') return t >= trace.read ? 'first' : 'prefill'
  const { started } = trace
  if (started && (state.phase === 'idle' || t >= started.at - started.tokenise_seconds)) return 'tokenise'
  return state.phase
}

/** Layers done, with the fraction of the one at work. @param {Span[]} layers @param {number} t */
function progress(layers, t) {
  const done = upTo(layers, t, (layer) => layer.b)
  return done < layers.length ? done + part(t, layers[done]) : done
}

/** A word is inked over 4 ms of the model's time, or a fifth of the time it had when that is shorter. @param {Trace} trace @param {number} word */
export function inkSeconds(trace, word) {
  const next = trace.words[word + 1]?.at ?? trace.end
  return Math.min(0.004, 0.2 * Math.max(0, next - trace.words[word].at))
}

/** @param {Trace} trace @param {number} word @param {number} t */
function inked(trace, word, t) {
  if (word < 0) return 0
  const span = inkSeconds(trace, word)
  return span > 0 ? Math.min(1, (t - trace.words[word].at) / span) : 1
}

/** @param {Trace} trace @param {Moment} moment */
function focusOf(trace, { phase, words, ink, step }) {
  if (phase === 'first') return trace.words.length ? 0 : -1
  if (phase !== 'decode') return -1
  if (ink < 1 || step < 0) return words - 1
  return words < trace.words.length ? words : words - 1
}

const LINGERS = 0.3 // of the next step's layers: so long one sees what became of the guesses before

/**
 * While a step reads guesses it is not known whether they are right; afterwards it is, until the next step is well on.
 *
 * @param {Trace} trace
 * @param {Moment} moment
 * @returns {Moment['guess']}
 */
function guessOf(trace, { t, phase, state, step, rows }) {
  if (phase !== 'decode') return null
  const last = upTo(trace.guesses, t, (guess) => guess.a) - 1
  const [before, now] = [trace.guesses[last - 1], trace.guesses[last]]
  if (!now) return null
  const early = step < 0 || rows < LINGERS * trace.layers
  /** @param {Guess} guess */
  const after = (guess) => guess.from + guess.accepted + 1
  if (t >= now.b) return early && state.chosen <= after(now) ? { ...now, judged: true } : null
  return before && early && after(before) === now.from ? { ...before, judged: true } : { ...now, judged: false }
}

/**
 * Moments worth stopping at: every layer while the paper is read (or its middle only), every word of the answer, and every
 * step that reads guesses.
 *
 * @param {Trace} trace
 */
export function stops(trace, everyLayer = true) {
  const times = [0, ...trace.waits.map((wait) => wait.at)]
  if (trace.started) times.push(trace.started.at)
  for (const { layers } of trace.passes) {
    for (const layer of everyLayer ? layers : [layers[layers.length >> 1]]) times.push(layer.b)
  }
  for (const { a, b } of trace.guesses) times.push(a + 0.7 * (b - a))
  for (const word of trace.words) times.push(Math.max(word.said ?? 0, word.at + inkSeconds(trace, word.index)))
  times.push(trace.end)
  return [...new Set(times)].sort((a, b) => a - b)
}
