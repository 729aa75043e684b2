// @ts-check
/** The paper as chips: choose a word to see where it looked, and a second one to find the heads that join the two. */
import { button, el } from '../../scene/dom.js'
import { beginsWord, visible } from '../../scene/text.js'

/**
 * @import {Token} from '../../scene/trace/events.js'
 *
 * @typedef {object} Desk
 * @property {{chips: {label: string}}} words
 * @property {Token[]} tokens
 * @property {number} prompt how many of the tokens are the paper's
 * @property {{row: number | null, column: number | null, hideSink: boolean}} choice
 * @property {(position: number) => string} label
 * @property {(position: number) => void} onChip
 */

const ALL = 1200 // chips shown at once; of a longer paper, those around what is chosen
const AROUND = 120

export class Chips {
  /** @param {Desk} desk */
  constructor(desk) {
    this.desk = desk
    this.root = el('div', { class: 'chips', role: 'group', 'aria-label': desk.words.chips.label, 'data-chips': true })
    /** @type {Map<number, HTMLElement>} */
    this.chips = new Map()
    this.built = ''
  }

  /** `weights` of the chosen row, or null while they are not here. @param {ArrayLike<number> | null} weights */
  draw(weights) {
    this.build()
    const { row, column, hideSink } = this.desk.choice
    const most = weights ? Math.max(1e-9, ...Array.from(weights).slice(hideSink ? 1 : 0)) : 1
    for (const [position, chip] of this.chips) {
      const weight = weights?.[position] ?? 0
      chip.style.setProperty('--look', `${hideSink && position === 0 ? 0 : Math.round((100 * weight) / most)}%`)
      chip.dataset.weight = weights && position < weights.length ? weight.toFixed(4) : ''
      chip.toggleAttribute('data-row', position === row)
      chip.toggleAttribute('data-column', position === column)
      chip.setAttribute('aria-pressed', String(position === row || position === column))
      chip.title = this.title(position, weights && position < weights.length ? weight : null)
    }
  }

  /** @param {number} position @param {number | null} weight */
  title(position, weight) {
    const where = `${this.desk.label(position)}`
    return weight === null ? where : `${where} · ${(100 * weight).toFixed(1)}%`
  }

  build() {
    const { tokens, choice } = this.desk
    const spans = pieces(tokens.length, [choice.row, choice.column, 0, tokens.length - 1])
    const key = JSON.stringify(spans)
    if (key === this.built) return
    this.built = key
    this.chips.clear()
    this.root.replaceChildren()
    for (const [start, stop] of spans) {
      if (start) this.root.append(el('span', { class: 'gap' }, '…'))
      for (let position = start; position < stop; position++) this.root.append(this.chip(position))
    }
  }

  /** @param {number} position */
  chip(position) {
    const { tokens, prompt } = this.desk
    const token = tokens[position]
    const spaced = position > 0 && beginsWord(token.text, tokens[position - 1].text)
    const kind = `chip${token.special ? ' special' : ''}${spaced ? ' spaced' : ''}${position >= prompt ? ' answer' : ''}`
    const chip = button(visible(token.text), () => this.desk.onChip(position), { class: kind, 'data-position': position, dir: 'auto' })
    this.chips.set(position, chip)
    return chip
  }
}

/** The spans of positions to show: all of a short paper, else what lies around each of `near`. @param {number} length @param {(number | null)[]} near */
export function pieces(length, near) {
  if (length <= ALL) return [[0, length]]
  const wanted = near.filter((at) => at !== null).map((at) => [Math.max(0, at - AROUND), Math.min(length, at + AROUND)])
  /** @type {number[][]} */
  const spans = []
  for (const [start, stop] of wanted.sort((a, b) => a[0] - b[0])) {
    const last = spans.at(-1)
    if (last && start <= last[1]) last[1] = Math.max(last[1], stop)
    else spans.push([start, stop])
  }
  return spans
}
