/** Bytes of the KV cache from a model's facts (engine/trace.py, `Facts`): formulas, nothing measured. */

/** One token's K and V in one layer, for `heads` KV heads. */
export const noteBytes = ({ kv_heads, head_size, value_bytes }, heads = kv_heads) => 2 * heads * head_size * value_bytes

/** Positions a layer still keeps of `length`: a sliding one what its next query sees beside itself. */
export const keptBy = ({ layer_kinds, window }, layer, length) =>
  layer_kinds[layer] === 'sliding' ? Math.min(length, window - 1) : length

/** The first position a layer still keeps. */
export const firstKept = (facts, layer, length) => length - keptBy(facts, layer, length)

/** Notes of all layers together; `slide` false: as if no layer forgot. */
export const notesAt = (facts, length, slide = true) =>
  facts.layer_kinds.reduce((sum, _, layer) => sum + (slide ? keptBy(facts, layer, length) : length), 0)

/** Query heads that read the same notes: {group, kind: 'own' | 'grouped' | 'one'}. */
export function sharing({ heads, kv_heads }) {
  return { group: heads / kv_heads, kind: heads === kv_heads ? 'own' : kv_heads === 1 ? 'one' : 'grouped' }
}
