// @ts-check
/**
 * @import {Chose, Decoded, Facts, Finished, Reused, Started, Token, TraceEvent} from '../../scene/trace/events.js'
 *
 * @typedef {'prefill' | 'loop' | 'guessed' | 'put' | 'taken'} From
 * @typedef {{chose: Chose, token: Token, step: Decoded | null, gap: number | null, from: From, cold: boolean, number: number}} LoopWord
 * @typedef {{started: Started | null, reused: Reused | null, finished: Finished | null, prefills: number, passes: number,
 *   prompt: number, tokens: Token[], words: LoopWord[], text: string}} Loop
 */

/**
 * What a run did, word by word: a pure fold of its events.
 *
 *   started, reused, finished   those events, or null;  prefills, passes   how many forward passes of each kind
 *   tokens    the paper's tokens and the answer's, by position;  prompt   how many are the paper's
 *   words     of the whole answer: {chose, token, step, gap, from, cold, number}
 *             step   the `decoded` that led to it, null for the first word, a word that was put, and words taken along
 *             gap    seconds since the word before it was chosen, null where nobody waited for it
 *             from   'prefill', 'loop', 'guessed' (drafted, and accepted by the pass of the word before), 'put' (a fork's own
 *                    first), 'taken' (along with another run's notes)
 *   text      everything written so far
 *
 * @param {TraceEvent[]} events
 * @returns {Loop}
 */
export function loopOf(events) {
  /** @type {Loop} */
  const loop = { started: null, reused: null, finished: null, prefills: 0, passes: 0, prompt: 0, tokens: [], words: [], text: '' }
  /** @type {Decoded | null} */
  let step = null
  /** @type {number | null} */
  let before = null
  for (const event of events) {
    if (event.type === 'started') {
      loop.started = event
      loop.prompt = event.prompt.length
      loop.tokens = [...event.prompt]
    } else if (event.type === 'reused') {
      loop.reused = event
      loop.text = event.text
      event.written.forEach((chose) => add(loop, { chose, step: null, gap: null, from: 'taken' }))
    } else if (event.type === 'prefilled') loop.prefills += 1
    else if (event.type === 'decoded') {
      loop.passes += 1
      step = event
    } else if (event.type === 'chose') {
      const from = step ? 'loop' : loop.passes ? 'guessed' : loop.reused && !loop.prefills ? 'put' : 'prefill'
      add(loop, { chose: event, step, gap: before === null ? null : event.at - before, from, cold: loop.started?.cold && loop.passes === 1 && !!step })
      before = event.at
      step = null
    } else if (event.type === 'wrote') loop.text += event.text
    else if (event.type === 'finished') loop.finished = event
  }
  return loop
}

/** @param {Loop} loop @param {Omit<LoopWord, 'token' | 'number' | 'cold'> & {cold?: boolean}} word */
function add(loop, word) {
  loop.words.push({ cold: false, ...word, token: word.chose.token, number: loop.words.length + 1 })
  loop.tokens.push(word.chose.token)
}

/** Inter-token latencies, as `Trace.itl` in engine/trace/times.py; median and 95th percentile by nearest rank; TPOT. @param {LoopWord[]} words */
export function paceOf(words) {
  const gaps = words.map((word) => word.gap).filter((gap) => gap !== null)
  if (!gaps.length) return null
  const sorted = [...gaps].sort((a, b) => a - b)
  const rank = (/** @type {number} */ share) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]
  const middle = sorted.length % 2 ? rank(0.5) : (sorted[sorted.length / 2 - 1] + sorted[sorted.length / 2]) / 2
  return { gaps, median: middle, p95: rank(0.95), most: sorted.at(-1), tpot: gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length }
}

/** Bytes of K and V that a pass over `positions` reads: a layer with a window reads no more than its window. @param {Facts} facts @param {number} positions */
export function notesAt(facts, positions) {
  const layer = 2 * facts.kv_heads * facts.head_size * facts.value_bytes
  return facts.layer_kinds.reduce((sum, kind) => sum + layer * (kind === 'sliding' ? Math.min(positions, facts.window) : positions), 0)
}

/** @param {Facts} facts @param {number} positions */
export const shareAt = (facts, positions) => notesAt(facts, positions) / (notesAt(facts, positions) + facts.weight_bytes)
