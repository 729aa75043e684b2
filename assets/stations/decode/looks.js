/** Where one head looked for the chosen word: paper and answer as chips, the exact weights on them. */
import { el, fill, setText } from '../../scene/dom.js'
import { visible } from '../../scene/text.js'
import { Chips } from '../shared/chips.js'

export class Looks {
  /** `desk`: {words, api, loop, k, layer, head, hideSink, onLook(change), onWord(k)}. */
  constructor(desk) {
    const { words, loop } = desk
    const { layers, heads } = loop.started.facts
    this.desk = desk
    const select = (name, options) => el('label', {}, words.looks[name], el('select', { 'data-choose': name, onchange: ({ target }) => desk.onLook({ [name]: target.value === 'mean' ? null : +target.value }) }, ...options))
    const numbers = (count) => Array.from({ length: count }, (_, at) => el('option', { value: at }, String(at + 1)))
    const sink = el('input', { type: 'checkbox', checked: desk.hideSink, 'data-choose': 'hide_sink', onchange: ({ target }) => desk.onLook({ hideSink: target.checked }) })
    this.choosers = [select('layer', numbers(layers)), select('head', [el('option', { value: 'mean' }, fill(words.looks.mean, { n: heads })), ...numbers(heads)])]
    this.told = el('p', { 'data-looks': true })
    this.chipDesk = {
      words, tokens: loop.tokens.slice(0, -1), prompt: loop.prompt, choice: { row: 0, column: null, hideSink: desk.hideSink },
      label: (position) => this.label(position), onChip: (position) => position + 1 >= loop.prompt && desk.onWord(position + 1 - loop.prompt),
    }
    this.chips = new Chips(this.chipDesk)
    this.root = el('div', { class: 'looks' }, el('div', { class: 'row options' }, ...this.choosers, el('label', {}, sink, words.looks.hide_sink)), this.told, this.chips.root)
  }

  label(position) {
    return `“${visible(this.chipDesk.tokens[position].text)}” (${position + 1})`
  }

  async show() {
    const { words, api, loop, k, layer, head, hideSink } = this.desk
    const row = loop.prompt - 1 + k
    const [layers, heads] = this.choosers.map((label) => label.querySelector('select'))
    layers.value = layer
    heads.value = head ?? 'mean'
    Object.assign(this.chipDesk.choice, { row, hideSink })
    const key = `${layer}.${head}.${row}`
    this.key = key
    if (this.found?.key !== key) {
      this.chips.draw(null)
      this.found = { key, ...(await api.row({ layer, head, row }).catch((problem) => ({ weights: null, problem }))) }
    }
    if (this.key !== key || !this.root.isConnected) return
    const { weights, source, problem } = this.found
    this.chips.draw(weights)
    if (!weights) {
      setText(this.told, problem?.message || words.looks.none)
      Object.assign(this.told.dataset, { row, code: problem?.code ?? '', source: '' })
      return
    }
    let best = hideSink && row > 0 ? 1 : 0
    weights.forEach((weight, at) => { if ((!hideSink || at > 0) && weight > weights[best]) best = at })
    const gaps = { row: this.label(row), column: this.label(best), weight: `${(100 * weights[best]).toFixed(1)}%` }
    setText(this.told, fill(words.looks.most, gaps) + (source === 'recorded' ? ` ${words.looks.recorded}` : ''))
    Object.assign(this.told.dataset, { row, column: best, weight: weights[best], layer, head: head ?? 'mean', source, code: '' })
  }
}
