// @ts-check
/** A map of weights as pixels. Pure functions: no element, no request. */

/**
 * @typedef {{data: Uint8Array, first: number, rows: number, columns: number}} HeadMap row `first + i` of the run is
 *   `data[i * columns …]`
 * @typedef {{ramp: Uint32Array, ahead: number, beyond: number, hidden: number}} Look colours; above the diagonal, not there,
 *   the sink when it is hidden
 */

/** 256 colours from `low` (weight 0) to `high` (weight 1), each `[r, g, b]`, as ImageData keeps them. @param {number[]} low @param {number[]} high */
export function ramp(low, high) {
  return Uint32Array.from({ length: 256 }, (_, step) => packed(low.map((from, i) => from + ((high[i] - from) * step) / 255)))
}

/** @param {number[]} colour */
export function packed([red, green, blue]) {
  return new Uint32Array(Uint8Array.of(Math.round(red), Math.round(green), Math.round(blue), 255).buffer)[0]
}

/** `[r, g, b]` of any CSS colour. @param {string} colour */
export function channels(colour) {
  const probe = document.createElement('canvas').getContext('2d', { willReadFrequently: true })
  if (!probe) return [0, 0, 0]
  probe.fillStyle = colour
  probe.fillRect(0, 0, 1, 1)
  return [...probe.getImageData(0, 0, 1, 1).data.slice(0, 3)]
}

/** Each row's largest value, its first column left out where `hideSink`; what "stretch" divides by. @param {HeadMap} map @param {boolean} hideSink */
export function maxima(map, hideSink) {
  const { data, rows, columns } = map
  return Uint8Array.from({ length: rows }, (_, row) => {
    let most = 0
    for (let at = row * columns + (hideSink ? 1 : 0), end = row * columns + columns; at < end; at++) {
      if (data[at] > most) most = data[at]
    }
    return most
  })
}

/** The cells `[start, stop)` that each of `side` pixels stands for; at least one. `view` is `[from, cells]`. @param {number} from @param {number} cells @param {number} side */
export function spans(from, cells, side) {
  const edge = (/** @type {number} */ pixel) => Math.floor(from + (pixel * cells) / side + 1e-9)
  return Array.from({ length: side }, (_, pixel) => [edge(pixel), Math.max(edge(pixel) + 1, edge(pixel + 1))])
}

/**
 * Fills `pixels` (Uint32Array, side × side). A pixel that stands for several cells shows the largest of them.
 *
 * @param {Uint32Array} pixels
 * @param {number} side
 * @param {HeadMap} map
 * @param {{x: number, y: number, cells: number}} view the cell at the left, at the top, and how many are shown along a side
 * @param {Look} look
 * @param {{hideSink?: boolean, most?: Uint8Array | null}} options `most` as `maxima` gives it
 */
export function paint(pixels, side, map, view, look, { hideSink = false, most = null } = {}) {
  const across = spans(view.x, view.cells, side)
  const down = spans(view.y, view.cells, side)
  for (let y = 0; y < side; y++) {
    if (y && down[y][0] === down[y - 1][0] && down[y][1] === down[y - 1][1]) {
      pixels.copyWithin(y * side, (y - 1) * side, y * side)
    } else {
      paintRow(pixels.subarray(y * side, (y + 1) * side), across, down[y], map, look, hideSink, most)
    }
  }
}

/**
 * @param {Uint32Array} line
 * @param {number[][]} across
 * @param {number[]} down
 * @param {HeadMap} map
 * @param {Look} look
 * @param {boolean} hideSink
 * @param {Uint8Array | null} most
 */
function paintRow(line, across, [top, bottom], map, look, hideSink, most) {
  const end = map.first + map.rows
  const start = Math.max(top, map.first)
  const stop = Math.min(bottom, end)
  for (let x = 0; x < line.length; x++) {
    const [left, right] = across[x]
    if (left < 0 || left >= map.columns || top < 0 || top >= end) line[x] = look.beyond
    else if (left > bottom - 1) line[x] = look.ahead
    else if (start >= stop) line[x] = look.beyond
    else if (hideSink && left === 0 && right === 1) line[x] = look.hidden
    else line[x] = look.ramp[largest(map, start, stop, hideSink ? Math.max(left, 1) : left, right, most)]
  }
}

/**
 * @param {HeadMap} map
 * @param {number} start
 * @param {number} stop
 * @param {number} left
 * @param {number} right
 * @param {Uint8Array | null} most
 */
function largest({ data, first, columns }, start, stop, left, right, most) {
  let found = 0
  for (let row = start; row < stop; row++) {
    const base = (row - first) * columns
    const last = Math.min(right, row + 1)
    let value = 0
    for (let column = left; column < last; column++) if (data[base + column] > value) value = data[base + column]
    if (most && value) value = Math.min(255, Math.round((255 * value) / most[row - first]))
    if (value > found) found = value
  }
  return found
}

/** Whole numbers between `from` and `to` at steps of 1, 2 or 5 × 10^k, no more than fit; positions as people count. @param {number} from @param {number} to @param {number} most */
export function ticks(from, to, most) {
  const least = (to - from) / Math.max(1, most)
  const step = [1, 2, 5].flatMap((digit) => [0, 1, 2, 3, 4, 5].map((power) => digit * 10 ** power)).sort((a, b) => a - b).find((size) => size >= least) ?? 1e6
  const first = Math.ceil((from + 1) / step) * step
  const found = []
  for (let position = Math.max(step === 1 ? 1 : step, first); position <= to; position += step) found.push(position)
  return found
}
