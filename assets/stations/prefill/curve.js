/**
 * What the wait should be: seconds = fixed + slope × FLOPs, FLOPs of a length from the formula (engine/cost.py: a part in
 * proportion to the length, and attention's with its square). The two numbers are fitted by least squares of relative
 * differences, so that a short length counts as much as a long one.
 *
 * `points`: [{tokens, middle (seconds), flops}]. Null with fewer than three, or where the FLOPs are not known;
 * else {fixed, slope, at(flops), mean and worst relative difference, line: [[tokens, seconds], …]}.
 */
export function curveOf(points) {
  if (points.length < 3 || points.some((point) => !point.flops)) return null
  const sum = (value) => points.reduce((total, point) => total + value(point), 0)
  const w = ({ middle }) => 1 / middle ** 2
  const [s, sx, sy] = [sum(w), sum((p) => w(p) * p.flops), sum((p) => w(p) * p.middle)]
  const [sxx, sxy] = [sum((p) => w(p) * p.flops ** 2), sum((p) => w(p) * p.flops * p.middle)]
  let slope = (s * sxy - sx * sy) / (s * sxx - sx ** 2)
  let fixed = (sy - slope * sx) / s
  // A wait without anything to read is not less than nothing.
  if (fixed < 0) [fixed, slope] = [0, sxy / sxx]
  const at = (flops) => fixed + slope * flops
  const off = points.map((point) => Math.abs(point.middle / at(point.flops) - 1))
  return { fixed, slope, at, mean: off.reduce((a, b) => a + b, 0) / off.length, worst: Math.max(...off), line: lineOf(points, at) }
}

/** Between two lengths FLOPs are not asked for: they follow the parabola through three neighbours, which they are. */
function lineOf(points, at) {
  const line = []
  const first = points[0].tokens
  const last = points.at(-1).tokens
  const steps = 48
  for (let i = 0; i <= steps; i++) {
    const n = first * (last / first) ** (i / steps)
    const k = Math.min(points.length - 2, Math.max(1, points.findIndex((point) => point.tokens >= n)))
    line.push([n, at(parabola(points.slice(k - 1, k + 2), n))])
  }
  return line
}

const parabola = ([a, b, c], n) =>
  (a.flops * (n - b.tokens) * (n - c.tokens)) / ((a.tokens - b.tokens) * (a.tokens - c.tokens)) +
  (b.flops * (n - a.tokens) * (n - c.tokens)) / ((b.tokens - a.tokens) * (b.tokens - c.tokens)) +
  (c.flops * (n - a.tokens) * (n - b.tokens)) / ((c.tokens - a.tokens) * (c.tokens - b.tokens))
