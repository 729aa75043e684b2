/** Below the marks: which columns were read and which written, and what they take in bytes. */
import { fill } from '../dom.js'
import { number } from '../text.js'
import { font } from './marks.js'

export function drawRuler(context, g, scene, moment, { bytes, tears: torn }) {
  const y = g.bottom + 0.3 * g.u
  drawBrackets(context, g, scene, moment, y)
  drawBytes(context, g, scene, y + 1.62 * g.u, bytes, torn ? scene.trace.stillThere(moment.t) : g.prompt)
}

function drawBrackets(context, g, { palette, words, trace }, { phase, state, passIndex }, y) {
  const bracket = (a, b, colour) => {
    context.strokeStyle = colour
    context.lineWidth = 1.8
    context.beginPath()
    context.moveTo(a, y)
    context.lineTo(a, y + 0.28 * g.u)
    context.lineTo(b, y + 0.28 * g.u)
    context.lineTo(b, y)
    context.stroke()
  }
  const binned = (n, template) => (n > 1 ? ` · ${fill(template, { n: number(n) })}` : '')
  const n = number(g.prompt)
  const parts = trace.passes.length
  const whole = !parts || trace.passes[0].stop === g.prompt
  const both = trace.rest
    ? fill(words.scratch.taken_read, { taken: number(trace.reused.stop), rest: number(trace.rest) })
    : ''
  const reading = whole
    ? fill(trace.passes[0]?.taken ? words.scratch.taken : words.scratch.read, { n })
    : fill(words.scratch.read_chunks, { n, parts: Math.max(parts, passIndex + 1) })
  const long = both || reading
  const left = binned(g.bin, words.scratch.binned)
  const right = binned(g.wordBin, words.scratch.binned)
  const few = both || fill(words.scratch.read_short, { n })
  font(context, g, g.small ? 0.8 : 0.94, '700')
  const width = (text) => context.measureText(text).width
  const room = g.end - g.left - 0.9 * g.u
  // The longest wording that fits.
  const { written: one, written_short: short } = words.scratch
  const pairs = [
    [long + left, one + right],
    [(left ? few : long) + left, short + right],
    [few + left, one + right],
    [few + left, short + right],
    [few + left, right.slice(3) || short],
  ]
  const [read, written] =
    pairs.find(
      (pair) => width(pair[0]) + width(pair[1]) < room && width(pair[0]) < Math.max(g.readEnd - g.left, 8 * g.u),
    ) ?? pairs[4]
  context.globalAlpha = phase === 'tokenise' || phase === 'queued' ? 0.4 : 1
  const seam = trace.rest ? g.edge(trace.reused.stop) : g.left
  if (trace.rest) bracket(g.left, seam - 0.15 * g.u, palette.pencil)
  bracket(seam, g.readEnd, palette.prefill)
  context.fillStyle = palette.prefill
  context.textAlign = 'left'
  context.fillText(read, g.left, y + (g.small ? 1.12 : 1.2) * g.u)
  if (g.columns > g.readColumns) {
    context.globalAlpha = state.chosen ? 1 : 0.5
    bracket(g.x(g.readColumns), g.end, palette.decode)
    context.fillStyle = palette.decode
    context.textAlign = 'right'
    context.fillText(written, g.end, y + (g.small ? 1.12 : 1.2) * g.u)
  }
  context.globalAlpha = 1
}

/**
 * A ruler in bytes, over the same columns; `read` of them are the prompt's. Where layers slide it counts columns' share,
 * and where columns were let go it is as long as those that are left.
 */
function drawBytes(context, g, { palette, trace }, y, bytes, read) {
  const each = trace.noteBytes * g.layers
  const most = (g.prompt + g.answers) * each
  const height = 0.26 * g.u
  const bar = (from, to, colour) => {
    context.fillStyle = colour
    context.fillRect(from, y, Math.max(0, to - from), height)
  }
  bar(g.left, g.readEnd, palette.edge)
  if (g.columns > g.readColumns) bar(g.x(g.readColumns), g.end, palette.edge)
  bar(g.left, g.edge(Math.min(bytes / each, read)), palette.prefill)
  if (bytes / each > read) bar(g.edge(read + (read < g.prompt ? 0 : 1e-9)), Math.min(g.end, g.edge(bytes / each)), palette.decode)
  drawTicks(context, g, palette, y, each, most)
}

function drawTicks(context, g, palette, y, each, most) {
  const [unit, size] = most >= 1e9 ? ['GB', 1e9] : most >= 1e6 ? ['MB', 1e6] : ['KB', 1e3]
  const step = niceStep(most / size / (g.small ? 4 : 8))
  const digits = decimals(step)
  font(context, g, 0.78)
  context.fillStyle = palette.pencil
  let free = -Infinity
  for (let value = 0; value <= (most / size) * 1.0001; value += step) {
    const x = g.edge((value * size) / each)
    const final = value + step > (most / size) * 1.0001
    const text = value === 0 ? '0' : number(value, digits) + (final ? ` ${unit}` : '')
    const width = context.measureText(text).width
    context.textAlign = value === 0 ? 'left' : 'center'
    const at = value === 0 ? x : Math.min(x, g.width - width / 2 - 2)
    context.fillRect(x, y, 1, 0.45 * g.u)
    if (at - width / 2 < free && !final) continue
    context.fillText(text, at, y + 1.12 * g.u)
    free = at + width / 2 + 0.5 * g.u
  }
}

/** Decimals that multiples of `step` need. */
export const decimals = (step) =>
  [0, 1, 2, 3, 4].find((n) => Math.abs(step * 10 ** n - Math.round(step * 10 ** n)) < 1e-6) ?? 4

/** 1, 2, 2.5 or 5 times a power of ten, not below `value`. */
export function niceStep(value) {
  const power = 10 ** Math.floor(Math.log10(value))
  return [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((step) => step >= value)
}
