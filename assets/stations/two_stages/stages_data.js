/**
 * What the two stages of a run came to: its own measured times, the costs computed for its passes (`/runs/{id}/costs`),
 * and what is kept of this machine (`/measures`). Plain values; nothing is drawn here.
 */
export const PARTS = ['projections', 'attention', 'mlp', 'norms', 'logits']

const sum = (list, of) => list.reduce((total, one) => total + of(one), 0)
const most = (list, of) => list.reduce((best, one) => (best && of(best) >= of(one) ? best : one), null)

/** The two stages as measured: {tokens, passes, seconds, flops, bytes: {…}, moved, intensity, rate, speed}. */
export function stagesOf(events, costs) {
  const passes = events.filter((event) => event.type === 'prefilled')
  const steps = events.filter((event) => event.type === 'decoded').map((event, index) => ({ event, cost: costs.steps[index] }))
  const decoded = steps.filter(({ event }) => (event.read ?? 1) === 1)
  const alone = decoded.filter(({ event }) => event.together === 1)
  return {
    prefill: passes.length ? read(passes, costs.chunks) : null,
    decode: wrote(alone),
    shared: decoded.length - alone.length,
    reread: steps.length - decoded.length,
  }
}

function read(passes, chunks) {
  const seconds = sum(passes, (pass) => pass.seconds)
  const bytes = Object.fromEntries(['weights', 'cache_read', 'cache_written'].map((key) => [key, sum(chunks, (chunk) => chunk.bytes[key])]))
  const parts = Object.fromEntries(PARTS.map((part) => [part, sum(chunks, (chunk) => chunk.flops[part])]))
  return worked({ tokens: passes.at(-1).stop, passes: passes.length, seconds, parts, bytes })
}

/** The step of middle duration: its own time with its own costs. */
function wrote(steps) {
  if (!steps.length) return null
  const middle = [...steps].sort((a, b) => a.event.seconds - b.event.seconds)[steps.length >> 1]
  const { flops, bytes, context } = middle.cost
  return worked({ tokens: 1, passes: steps.length, context, seconds: middle.event.seconds, parts: flops, bytes })
}

function worked(stage) {
  const flops = sum(PARTS, (part) => stage.parts[part])
  const moved = sum(Object.values(stage.bytes), (bytes) => bytes)
  return { ...stage, flops, moved, intensity: flops / moved, rate: flops / stage.seconds, speed: moved / stage.seconds }
}

/** This machine's best figures, or null while one of the two is missing: {compute, bandwidth} as results of `/measures`. */
export function peaksOf(measures) {
  const peaks = Object.entries(measures?.results ?? {}).filter(([name]) => name.startsWith('peak/')).map(([, result]) => result)
  const best = (kind) => most(peaks.filter((peak) => peak.kind === kind), (peak) => peak.rate)
  const [compute, bandwidth] = [best('compute'), best('bandwidth')]
  return compute && bandwidth ? { compute, bandwidth, count: peaks.length, busy: Math.max(...peaks.map((peak) => peak.busy ?? 0)) } : null
}

/** Decode in batches, as far as it was measured for a prompt of this length. */
export function batchesOf(measures, costs) {
  if (!measures) return []
  return measures.batches.flatMap((batch) => {
    const result = measures.results[`batch/${costs.prompt}/${batch}`]
    if (!result) return []
    const { total, moved, intensity } = costs.batches[batch]
    return [{ batch, seconds: result.best, busy: result.busy, flops: total, moved, intensity, rate: total / result.best, speed: moved / result.best }]
  })
}

/** What the machine allows at an intensity, in FLOP/s. */
export const roof = (peaks, intensity) => Math.min(peaks.compute.rate, peaks.bandwidth.rate * intensity)

/**
 * Which roof a point is under, and how close it comes: {roof: 'compute' | 'bandwidth', share, bound}. `bound` is false
 * where it reaches less than half of what the machine allows: then neither roof is what it waits for most.
 */
export function verdict(peaks, { intensity, rate }) {
  const under = peaks.bandwidth.rate * intensity < peaks.compute.rate ? 'bandwidth' : 'compute'
  const share = rate / roof(peaks, intensity)
  return { roof: under, share, bound: share >= 0.5 }
}

/** Whether a run was sat on the machine, in the dtype and with the weights that the measures are of; of none where no
 * model is loaded. */
export function sameMachine(facts, machine) {
  if (!machine) return false
  const own = { ...facts, torch: Object.fromEntries(facts.versions).torch, weights: facts.weights_sha256 }
  return ['device', 'device_name', 'threads', 'dtype', 'torch', 'model', 'weights'].every((key) => own[key] === machine[key])
}

/** Sentences one after another: Chinese ones need no space between them. */
export const joined = (sentences) => sentences.filter(Boolean).join(' ').replaceAll('。 ', '。')

const SCALES = [['T', 1e12], ['G', 1e9], ['M', 1e6], ['k', 1e3]]

/** A number of FLOPs, bytes, or either a second: `11.2 GFLOP`. Decimal units. */
export function si(value, unit) {
  const [prefix, size] = SCALES.find(([, size]) => value >= size * 0.9995) ?? ['', 1]
  const scaled = value / size
  return `${scaled.toFixed(scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0)} ${prefix}${unit}`
}

export const share = (value) => `${(100 * value).toFixed(value < 0.0995 ? 1 : 0)}%`
