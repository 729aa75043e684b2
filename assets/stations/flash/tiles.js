// @ts-check
/**
 * Attention by tiles with a running maximum and a running sum, on real numbers: the same as engine/labs/tiles.py, in the page.
 *
 * `head`: {n, size, scale, window, q, k, v, exact} (Float32Array of n × size each). `Walk` goes through the tiles in
 * FlashAttention's order: a tile of queries at a time, its keys tile by tile, those above the diagonal left out.
 */
/**
 * @import {Bytes} from '../shared/api.js'
 *
 * @typedef {object} Head
 * @property {number} n positions
 * @property {number} size
 * @property {number} scale
 * @property {number} window positions a row sees; 0 when it sees all before it
 * @property {number} difference between the engine's tiles and the formula
 * @property {Float32Array} q
 * @property {Float32Array} k
 * @property {Float32Array} v
 * @property {Float32Array} exact
 *
 * @typedef {{row: number, rowStop: number, column: number, columnStop: number}} Tile
 * @typedef {{row: number, before: {m: number, l: number}, scaled: number, grew: boolean, m: number, l: number}} Told
 */

/** @param {Bytes} bytes @returns {Head} */
export function headOf({ data, header }) {
  const number = (/** @type {string} */ name) => Number(header(name))
  const [n, size] = [number('X-Positions'), number('X-Size')]
  const all = new Float32Array(data.buffer, data.byteOffset, 4 * n * size)
  const [q, k, v, exact] = [0, 1, 2, 3].map((part) => all.subarray(part * n * size, (part + 1) * n * size))
  return { n, size, scale: number('X-Scale'), window: number('X-Window'), difference: number('X-Difference'), q, k, v, exact }
}

/**
 * A head that was kept (engine/labs/heads.py): the same numbers, in base64.
 *
 * @param {{positions: number, size: number, scale: number, window: number, difference: number, data: string}} kept
 */
export function headKept({ positions: n, size, scale, window, difference, data }) {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0))
  /** @type {Record<string, number>} */
  const values = { 'X-Positions': n, 'X-Size': size, 'X-Scale': scale, 'X-Window': window, 'X-Difference': difference }
  return headOf({ data: bytes, header: (name) => String(values[name]) })
}

/** @param {Pick<Head, 'window'>} head @param {number} row @param {number} column */
export const sees = ({ window }, row, column) => column <= row && (!window || row - column < window)

/** @param {Head} head @param {number} row @param {number} column */
function score({ q, k, size, scale }, row, column) {
  let sum = 0
  for (let i = 0, a = row * size, b = column * size; i < size; i++) sum += q[a + i] * k[b + i]
  return sum * scale
}

/** The tiles in order. @param {Pick<Head, 'n' | 'window'>} head @param {number} side */
export function plan({ n, window }, side) {
  /** @type {Tile[]} */
  const tiles = []
  for (let row = 0; row < n; row += side) {
    const first = window ? Math.floor(Math.max(0, row - window + 1) / side) * side : 0
    for (let column = first; column < Math.min(row + side, n); column += side) {
      tiles.push({ row, rowStop: Math.min(row + side, n), column, columnStop: Math.min(column + side, n) })
    }
  }
  return tiles
}

export class Walk {
  /** @param {Head} head @param {number} side */
  constructor(head, side) {
    this.head = head
    this.side = side
    this.tiles = plan(head, side)
    this.step = 0
    this.largest = new Float32Array(head.n).fill(-Infinity)
    this.total = new Float32Array(head.n)
    this.output = new Float32Array(head.n * head.size)
    this.weights = new Float32Array(0)
    /** @type {Told | null} */
    this.told = null
  }

  reset() {
    this.step = 0
    this.largest.fill(-Infinity)
    this.total.fill(0)
    this.output.fill(0)
    this.told = null
  }

  get tile() {
    return this.tiles[this.step - 1] ?? null
  }

  get over() {
    return this.step === this.tiles.length
  }

  /** @param {number} step */
  to(step) {
    if (step < this.step) this.reset()
    while (this.step < step) this.next()
  }

  /** One tile. `weights` are the tile's own exp(score - m); `told` is how m and l of one of its rows changed: of the last
   * that met a larger score than before, else of the last. */
  next() {
    const { head, largest, total, output } = this
    const { size, v } = head
    const tile = this.tiles[this.step]
    const wide = tile.columnStop - tile.column
    /** @type {Told | null} */
    let told = null
    this.weights = new Float32Array((tile.rowStop - tile.row) * wide)
    for (let row = tile.row; row < tile.rowStop; row++) {
      const line = this.weights.subarray((row - tile.row) * wide, (row - tile.row + 1) * wide)
      let most = largest[row]
      for (let i = 0; i < wide; i++) {
        line[i] = sees(head, row, tile.column + i) ? score(head, row, tile.column + i) : -Infinity
        if (line[i] > most) most = line[i]
      }
      const before = { m: largest[row], l: total[row] }
      if (most === -Infinity) { line.fill(0); continue } // this row sees nothing yet
      const scaled = before.m === -Infinity ? 0 : Math.exp(before.m - most)
      const out = output.subarray(row * size, (row + 1) * size)
      for (let j = 0; j < size; j++) out[j] *= scaled
      let sum = 0
      for (let i = 0; i < wide; i++) {
        line[i] = Math.exp(line[i] - most)
        sum += line[i]
        if (line[i]) for (let j = 0, at = (tile.column + i) * size; j < size; j++) out[j] += line[i] * v[at + j]
      }
      largest[row] = most
      total[row] = before.l * scaled + sum
      const grew = before.l > 0 && scaled < 1
      if (grew || !told?.grew) told = { row, before, scaled, grew, m: largest[row], l: total[row] }
    }
    this.told = told
    this.step += 1
  }

  /** Largest difference between the output so far, divided by l, and the formula's; all rows when it is over. */
  difference() {
    const { head, output, total, over, tile } = this
    const rows = over ? head.n : tile?.row ?? 0
    let most = 0
    for (let at = 0; at < rows * head.size; at++) most = Math.max(most, Math.abs(output[at] / total[Math.floor(at / head.size)] - head.exact[at]))
    return most
  }
}

/** All weights, n × n, as the formula has them: what is never written, to be drawn as a ghost. @param {Head} head */
export function ghost(head) {
  const weights = new Float32Array(head.n * head.n)
  for (let row = 0; row < head.n; row++) {
    const line = weights.subarray(row * head.n, row * head.n + row + 1)
    let most = -Infinity
    for (let column = 0; column <= row; column++) {
      line[column] = sees(head, row, column) ? score(head, row, column) : -Infinity
      most = Math.max(most, line[column])
    }
    let sum = 0
    for (let column = 0; column <= row; column++) sum += line[column] = Math.exp(line[column] - most)
    for (let column = 0; column <= row; column++) line[column] /= sum
  }
  return weights
}
