/** Find the heads that join two words, and see all heads in small. */
import { button, el, fill, setText } from '../../scene/dom.js'
import { channels, packed, ramp } from '../shared/heat.js'

const FIRST = 12 // heads listed before somebody asks for all
const CELLS = 32 // along a side of a head in small

export class Ranking {
  /** `desk`: {words, api, choice, label(position), onHead(layer, head)}. */
  constructor(desk) {
    this.desk = desk
    this.sentence = el('p', { 'data-pair': true, 'aria-live': 'polite' }, desk.words.pair.choose)
    this.list = el('ol', { class: 'ranking' })
    this.more = button(desk.words.pair.more, () => this.draw(true), { class: 'pill', hidden: true })
    this.root = el('div', { class: 'pair' }, this.sentence, this.list, this.more)
  }

  /** Rank for the chosen pair. */
  async show() {
    const { desk } = this
    const { row, column } = desk.choice
    const turn = (this.turn = (this.turn ?? 0) + 1)
    if (row === null || column === null) return this.clear(desk.words.pair.choose)
    try {
      const found = await desk.api.heads(row, column)
      if (turn !== this.turn) return
      this.found = found
      this.draw(false)
    } catch (problem) {
      if (turn === this.turn) this.clear(problem.message || desk.words.trouble, problem.code)
    }
  }

  clear(sentence, code = '') {
    this.found = null
    setText(this.sentence, sentence)
    Object.assign(this.sentence.dataset, { row: '', column: '', code, source: '' })
    this.list.replaceChildren()
    this.more.hidden = true
  }

  draw(all) {
    const { words, label } = this.desk
    const { heads, source, row, column } = this.found
    const names = { row: label(row), column: label(column) }
    const mean = heads.reduce((sum, one) => sum + one.weight, 0) / Math.max(1, heads.length)
    const told = !heads.length ? words.pair.none : source === 'recorded' ? words.pair.recorded : words.pair.found
    setText(this.sentence, fill(told, { ...names, n: heads.length, mean: `${(100 * mean).toFixed(1)}%` }))
    Object.assign(this.sentence.dataset, { row, column, source, mean, code: '' })
    const shown = all ? heads : heads.slice(0, FIRST)
    const most = Math.max(1e-9, heads[0]?.weight ?? 0)
    this.list.replaceChildren(...shown.map((one) => this.entry(one, most)))
    this.more.hidden = shown.length === heads.length
    this.mark()
  }

  entry({ layer, head, weight }, most) {
    const { words, onHead } = this.desk
    const name = fill(words.pair.head, { layer: layer + 1, head: head + 1 })
    return el('li', {},
      el('button', { type: 'button', onclick: () => onHead(layer, head), 'data-layer': layer, 'data-head': head, 'data-weight': weight },
        el('i', { style: `width: ${(100 * weight) / most}%` }), el('span', {}, name), el('b', {}, `${(100 * weight).toFixed(1)}%`)))
  }

  /** Which of the listed heads is on show. */
  mark() {
    const { layer, head } = this.desk.choice
    for (const entry of this.list.querySelectorAll('button')) {
      entry.setAttribute('aria-pressed', +entry.dataset.layer === layer && +entry.dataset.head === head)
    }
  }
}

export class Small {
  /** `desk` as above, and `facts`. */
  constructor(desk) {
    this.desk = desk
    this.grid = el('div', { class: 'tiny-grid', 'data-small': '0' })
    this.told = el('p', { class: 'caption' })
    this.ask = button(desk.words.small.ask, () => this.show(), { class: 'pill main', 'data-do': 'small' })
    this.root = el('div', {}, this.ask, this.told, this.grid)
  }

  close() {
    this.closed = true
  }

  /** Layer after layer, so that nobody's word waits long for our pictures. */
  async show() {
    const { desk, grid } = this
    this.ask.disabled = true
    grid.replaceChildren()
    const look = getComputedStyle(grid)
    const colours = ramp(channels(look.getPropertyValue('--low')), channels(look.getPropertyValue('--high')))
    const ahead = packed(channels(look.getPropertyValue('--sheet')))
    try {
      for (let layer = 0; layer < desk.facts.layers && !this.closed; layer++) {
        const { cells, heads } = await desk.api.small(layer, CELLS)
        if (this.closed) return
        const span = Math.ceil((desk.length + 1) / cells)
        setText(this.told, fill(span > 1 ? desk.words.small.sampled : desk.words.small.whole, { n: cells, span }))
        grid.append(el('div', { class: 'tiny-row' }, el('span', {}, String(layer + 1)),
          ...heads.map((data, head) => this.picture(layer, head, data, cells, colours, ahead))))
        grid.dataset.small = layer + 1
      }
    } catch (problem) {
      setText(this.told, problem.message || desk.words.trouble)
    }
    this.ask.disabled = false
    this.mark()
  }

  picture(layer, head, data, cells, colours, ahead) {
    const { words, onHead } = this.desk
    const canvas = el('canvas', { width: cells, height: cells })
    const context = canvas.getContext('2d')
    const picture = context.createImageData(cells, cells)
    const pixels = new Uint32Array(picture.data.buffer)
    for (let at = 0; at < data.length; at++) pixels[at] = at % cells > Math.floor(at / cells) ? ahead : colours[data[at]]
    context.putImageData(picture, 0, 0)
    const name = fill(words.pair.head, { layer: layer + 1, head: head + 1 })
    return el('button', { type: 'button', title: name, 'aria-label': name, 'data-layer': layer, 'data-head': head, onclick: () => onHead(layer, head) }, canvas)
  }

  mark() {
    const { layer, head } = this.desk.choice
    for (const one of this.grid.querySelectorAll('button')) {
      one.setAttribute('aria-pressed', +one.dataset.layer === layer && +one.dataset.head === head)
    }
  }
}
