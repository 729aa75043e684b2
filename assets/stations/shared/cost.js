// @ts-check
/** Bytes of the KV cache from a model's facts (engine/trace/events.py, `Facts`): formulas, nothing measured. */

/** @import {Facts} from '../../scene/trace/events.js' */

/** One token's K and V in one layer, for `heads` KV heads. @param {Pick<Facts, 'kv_heads' | 'head_size' | 'value_bytes'>} facts */
export const noteBytes = ({ kv_heads, head_size, value_bytes }, heads = kv_heads) => 2 * heads * head_size * value_bytes

/** Positions a layer still keeps of `length`: a sliding one what its next query sees beside itself. @param {Facts} facts @param {number} layer @param {number} length */
export const keptBy = ({ layer_kinds, window }, layer, length) =>
  layer_kinds[layer] === 'sliding' ? Math.min(length, window - 1) : length

/** The first position a layer still keeps. @param {Facts} facts @param {number} layer @param {number} length */
export const firstKept = (facts, layer, length) => length - keptBy(facts, layer, length)

/** Notes of all layers together; `slide` false: as if no layer forgot. @param {Facts} facts @param {number} length */
export const notesAt = (facts, length, slide = true) =>
  facts.layer_kinds.reduce((sum, _, layer) => sum + (slide ? keptBy(facts, layer, length) : length), 0)

/** Query heads that read the same notes: {group, kind: 'own' | 'grouped' | 'one'}. @param {Facts} facts */
export function sharing({ heads, kv_heads }) {
  return { group: heads / kv_heads, kind: heads === kv_heads ? 'own' : kv_heads === 1 ? 'one' : 'grouped' }
}
