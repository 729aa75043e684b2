// @ts-check
/** What a station asks of the service about one run. Refusals are thrown as the service's `{code, values, message}`. */
import { ask } from '../../scene/source.js'

/**
 * @typedef {{layer: number, head: number | null}} Choice of a head; null is the mean of the layer's
 * @typedef {{data: Uint8Array, header: (name: string) => string | null}} Bytes
 */

export class RunApi {
  /** @param {string} base @param {string} run @param {string} lang */
  constructor(base, run, lang) {
    this.base = base
    this.path = `runs/${encodeURIComponent(run)}`
    this.lang = lang
  }

  /** @template T @returns {Promise<T>} */
  json(path = '') {
    return ask(this.base, `${this.path}${path}`, this.lang)
  }

  /** @param {string} path @returns {Promise<Bytes>} */
  async bytes(path) {
    let reply
    try {
      reply = await fetch(`${this.base}/api/${this.path}${path}`, { headers: { 'Accept-Language': this.lang } })
    } catch {
      throw { code: 'unreachable', values: {}, message: '' }
    }
    if (!reply.ok) throw (await reply.json().catch(() => null))?.error ?? { code: 'unreachable', values: {}, message: '' }
    return { data: new Uint8Array(await reply.arrayBuffer()), header: (name) => reply.headers.get(name) }
  }

  /** All rows of a head as bytes, 255 being a weight of 1. @param {Choice} choice */
  async map({ layer, head }) {
    const { data, header } = await this.bytes(`/map?${query({ layer, head })}`)
    const number = (/** @type {string} */ name) => Number(header(name))
    return { data, first: number('X-First-Row'), rows: number('X-Rows'), columns: number('X-Columns'), source: header('X-Source') }
  }

  /** One row, exact: weights 0…1. @param {Choice & {row: number}} choice */
  async row({ layer, head, row }) {
    const { data, header } = await this.bytes(`/attention?${query({ layer, head, row })}`)
    const view = new DataView(data.buffer)
    const weights = Float32Array.from({ length: data.length / 2 }, (_, i) => view.getUint16(2 * i, true) / 65535)
    return { weights, source: header('X-Source') }
  }

  /** @param {number} row @param {number} column */
  heads(row, column) {
    return this.json(`/heads?${query({ row, column })}`)
  }

  /** Every head of a layer in small: `cells × cells` bytes each. @param {number} layer @param {number} size */
  async small(layer, size) {
    const { data, header } = await this.bytes(`/small?${query({ layer, size })}`)
    const cells = Number(header('X-Cells'))
    return { cells, heads: Array.from({ length: Number(header('X-Heads')) }, (_, head) => data.subarray(head * cells * cells, (head + 1) * cells * cells)) }
  }

  lens() {
    return this.json('/logit-lens')
  }
}

/** @param {Record<string, number | null>} values */
const query = (values) =>
  new URLSearchParams(Object.entries(values).flatMap(([name, value]) => (value === null ? [] : [[name, String(value)]])))
