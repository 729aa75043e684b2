// @ts-check
/** The formula below the scratch paper: what the bytes on it are made of; '' where no formula of ours gives them. */
import { fill } from '../dom.js'
import { number } from '../text.js'

/**
 * @import {Facts} from '../trace/events.js'
 * @import {Moment} from '../trace/moment.js'
 * @import {State} from '../trace/state.js'
 * @import {Trace} from '../trace/trace.js'
 *
 * @typedef {(typeof import('../../words/en/scene.json'))['scratch']} Words
 */

/** @param {{words: {scratch: Words}, trace: Trace}} scene @param {Moment} moment @param {number} now bytes */
export function formulaOf({ words, trace }, { state, pass, reading }, now) {
  if (!trace.started || !now) return ''
  const { squeezed } = trace
  const { facts } = trace.started
  const w = words.scratch
  const common = { heads: facts.kv_heads, size: facts.head_size, value: facts.value_bytes, ...squeezed }
  const notes = now / trace.noteBytes
  const slides = facts.window > 0 && state.columns > facts.window
  if (slides) return squeezed || state.forgotten ? '' : fill(w.formula_window, { ...common, ...windows(facts, state, notes) })
  const whole = squeezed ? w.formula_squeezed : w.formula
  if (reading && pass?.start === 0) {
    const n = pass.stop - pass.start
    return fill(whole, { ...common, layers: Math.round(notes / n), n: number(n) })
  }
  if (notes % facts.layers) return fill(squeezed ? w.formula_squeezed_notes : w.formula_notes, { ...common, n: number(notes) })
  const columns = notes / facts.layers
  if (!state.forgotten) return fill(whole, { ...common, layers: facts.layers, n: number(columns) })
  const gone = number(state.forgotten)
  return fill(w.formula_torn, { ...common, layers: facts.layers, n: number(columns + state.forgotten), gone })
}

/** Layers that keep everything, and what the others keep. @param {Facts} facts @param {State} state @param {number} notes */
function windows(facts, state, notes) {
  const full = facts.layer_kinds.filter((layer) => layer === 'full').length
  const sliding = facts.layers - full
  return { full, sliding, n: number(state.columns), window: number((notes - full * state.columns) / sliding) }
}
