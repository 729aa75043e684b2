// @ts-check
/**
 * The lens: where a word looked, for the layer and head a person chose. Rows are asked for one by one, for the word
 * on show only, at most eight a second; what arrives too late is kept but not drawn. The model is never run again.
 */
/**
 * @import {Attention, Source} from './source.js'
 *
 * @typedef {object} Choice
 * @property {number} layer
 * @property {number | null} head null: the layer's mean
 * @property {boolean} sink whether the first token's share is shown, too
 * @typedef {{weight: number, column: number}} Look
 * @typedef {Attention & {looks?: Look[]}} Row
 * @typedef {{key: string, row: number, layer: number, head: number | null}} Wanted
 */

const PAUSE = 125 // milliseconds between two requests

export class Lens {
  /** @param {Pick<Source, 'attention'>} source @param {Choice} choice @param {(row: number) => void} onRow */
  constructor(source, choice, onRow) {
    this.source = source
    this.choice = choice
    this.onRow = onRow
    /** @type {Map<string, Row | 'missing'>} */
    this.rows = new Map()
    /** @type {Wanted | null} */
    this.wanted = null
    this.timer = 0
    this.busy = false
    this.closed = false
  }

  /** @param {Partial<Choice>} choice */
  choose(choice) {
    this.choice = { ...this.choice, ...choice }
  }

  /** The row for position `row`: {weights, provenance} when it is here, 'missing' when nobody has it, else null. @param {number} row */
  row(row) {
    const key = this.key(row)
    const found = this.rows.get(key)
    if (found === undefined) this.want(key, row)
    return found ?? null
  }

  /** The columns looked at, strongest first; the sink is left out unless asked for. @param {number} row */
  looks(row, least = 0.006) {
    const found = this.row(row)
    if (!found || found === 'missing') return []
    found.looks ??= Array.from(found.weights, (weight, column) => ({ weight, column }))
      .filter((look) => look.weight >= 0.001)
      .sort((x, y) => y.weight - x.weight)
    return found.looks.filter((look) => look.weight >= least && (this.choice.sink || look.column > 0))
  }

  /** @param {number} row */
  key(row) {
    return `${this.choice.layer}.${this.choice.head ?? 'mean'}.${row}`
  }

  /** @param {string} key @param {number} row */
  want(key, row) {
    this.wanted = { key, row, layer: this.choice.layer, head: this.choice.head }
    if (!this.timer && !this.busy) this.ask(this.wanted)
  }

  /** @param {Wanted} wanted */
  async ask({ key, row, layer, head }) {
    this.wanted = null
    this.busy = true
    const asked = performance.now()
    try {
      this.rows.set(key, await this.source.attention({ layer, head, row }))
    } catch {
      this.rows.set(key, 'missing')
    }
    this.busy = false
    if (this.closed) return
    if (key === this.key(row)) this.onRow(row)
    const wait = PAUSE - (performance.now() - asked)
    this.timer = setTimeout(
      () => {
        this.timer = 0
        if (this.wanted && !this.rows.has(this.wanted.key)) this.ask(this.wanted)
      },
      Math.max(0, wait),
    )
  }

  close() {
    this.closed = true
    clearTimeout(this.timer)
  }
}
