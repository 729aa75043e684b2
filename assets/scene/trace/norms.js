// @ts-check
/** Norms of K and V arrive as one byte per position (engine/trace/events.py, `norm_of`); here they become pencil marks. */

/** The norm a byte stands for. @param {number} byte */
export const normOf = (byte) => (byte === 0 ? 0 : 2 ** ((byte - 128) / 16))

/** URL-safe base64 to bytes. @param {string} text */
export function bytesOf(text) {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(binary, (c) => c.charCodeAt(0))
}

/** All norms of one kind: `rows[layer][position]` as bytes, and per layer a table byte → 0…1 inside that layer. */
export class Norms {
  /** @param {number} layers @param {number} capacity positions there is room for at first */
  constructor(layers, capacity) {
    this.rows = Array.from({ length: layers }, () => new Uint8Array(capacity))
    this.tables = Array.from({ length: layers }, () => new Float32Array(256).fill(0.5))
    this.known = new Int32Array(layers)
    this.scaled = new Int32Array(layers)
    /** @type {Map<string, [number, number]>} */
    this.spreads = new Map()
  }

  /** Positions [start, start + bytes.length) of one layer. @param {number} layer @param {number} start @param {Uint8Array} bytes */
  put(layer, start, bytes) {
    if (start + bytes.length > this.rows[layer].length) {
      const larger = new Uint8Array(2 * (start + bytes.length))
      larger.set(this.rows[layer])
      this.rows[layer] = larger
    }
    this.rows[layer].set(bytes, start)
    this.known[layer] = start + bytes.length
  }

  /** Sets the layer's scale: 0 at the 5th, 1 at the 95th percentile of what the prompt's positions have. @param {number} layer */
  scale(layer) {
    const counts = new Uint32Array(256)
    const known = this.rows[layer].subarray(0, this.known[layer])
    for (const byte of known) counts[byte]++
    const low = normOf(percentile(counts, known.length, 0.05))
    const high = normOf(percentile(counts, known.length, 0.95))
    const table = this.tables[layer]
    this.scaled[layer] = this.known[layer]
    for (let byte = 0; byte < 256; byte++) {
      table[byte] = high > low ? Math.min(1, Math.max(0, (normOf(byte) - low) / (high - low))) : 0.5
    }
  }

  /**
   * Place (0…1) inside the layer of positions [start, stop): one position, or the mean of a column of `bin`.
   *
   * @param {number} layer
   * @param {number} start
   * @param {number} stop
   */
  place(layer, start, stop, bin = 1) {
    const mean = this.mean(layer, start, stop)
    if (bin === 1) return mean
    const [low, high] = this.spread(layer, bin)
    return high > low ? Math.min(1, Math.max(0, (mean - low) / (high - low))) : 0.5
  }

  /**
   * Means lie close together: columns of `bin` positions are ranked among columns, 5th to 95th percentile.
   *
   * @param {number} layer
   * @param {number} bin
   */
  spread(layer, bin) {
    const key = `${layer}.${bin}.${this.scaled[layer]}`
    let spread = this.spreads.get(key)
    if (!spread) {
      const means = []
      for (let start = 0; start < this.scaled[layer]; start += bin)
        means.push(this.mean(layer, start, Math.min(this.scaled[layer], start + bin)))
      means.sort((a, b) => a - b)
      spread = [means[Math.floor(means.length * 0.05)], means[Math.floor(means.length * 0.95)]]
      this.spreads.set(key, spread)
    }
    return spread
  }

  /** @param {number} layer @param {number} start @param {number} stop */
  mean(layer, start, stop) {
    const row = this.rows[layer]
    const table = this.tables[layer]
    let sum = 0
    for (let position = start; position < stop; position++) sum += table[row[position]]
    return sum / (stop - start)
  }

  /** @param {number} layer @param {number} position */
  norm(layer, position) {
    return normOf(this.rows[layer][position])
  }
}

/** @param {Uint32Array} counts how often each byte is there @param {number} total @param {number} share */
function percentile(counts, total, share) {
  let seen = 0
  for (let byte = 0; byte < 256; byte++) {
    seen += counts[byte]
    if (seen > total * share) return byte
  }
  return 255
}
