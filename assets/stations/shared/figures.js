// @ts-check
/** What a run came to, from its trace alone; null where it has no such value. Seconds, bytes, counts. */

/**
 * @import {Settings} from '../../scene/trace/events.js'
 * @import {Trace} from '../../scene/trace/trace.js'
 */

/** @param {Trace} trace */
export function figuresOf(trace) {
  const { started, last, words, finished } = trace
  if (!started) return null
  const own = words.slice(last.kept)
  const gaps = own.slice(1).map((word, i) => word.at - own[i].at)
  const note = last.columns ? last.kv_bytes / last.columns : null
  return {
    ttft: last.ttft,
    tpot: last.tpot,
    itl: median(gaps),
    prompt: last.prompt,
    answer: words.length,
    notes: last.columns ? last.kv_bytes : null,
    note,
    text: last.text,
    ids: words.map((word) => word.token.id),
    reason: finished?.reason ?? '',
    code: finished?.code ?? '',
    values: Object.fromEntries(finished?.values ?? []),
    together: Math.max(1, ...trace.steps.map((step) => step.together)),
    cold: started.cold,
    facts: started.facts,
    settings: started.settings,
    taken: last.reused,
  }
}

/** @param {number[]} values */
export function median(values) {
  if (!values.length) return null
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** Names of the settings in which two runs differ, the paper's text among them. @param {Partial<Settings>} one @param {Partial<Settings>} two */
export function differing(one, two) {
  const names = new Set(/** @type {(keyof Settings)[]} */ ([...Object.keys(one), ...Object.keys(two)]))
  return [...names].filter((name) => JSON.stringify(one[name] ?? null) !== JSON.stringify(two[name] ?? null))
}
