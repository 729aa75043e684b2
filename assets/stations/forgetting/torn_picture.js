/**
 * Position by word: which columns of the notes were there when each word was made, and the paper itself with what was
 * torn off. A click on a row, or the arrow keys, choose the word.
 */
import { el, fill, setText } from '../../scene/dom.js'
import { number, visible } from '../../scene/text.js'
import { choose } from '../lab/kept_answers.js'
import { chosen } from './forgotten.js'

export class TornPicture {
  constructor(desk) {
    this.desk = desk
    this.word = 1
    const { words } = desk
    this.none = el('p', { class: 'hint' }, words.picture.none)
    this.pick = el('div', { class: 'row options' })
    this.canvas = el('canvas', {})
    this.picture = el('div', { class: 'columns-picture', role: 'slider', tabindex: 0, 'aria-label': words.picture.label, 'aria-valuemin': 1 }, this.canvas)
    this.told = el('p', { class: 'told', 'aria-live': 'polite' })
    this.text = el('p', { class: 'forgetting-text', dir: 'auto', tabindex: 0 })
    this.key = el('ul', { class: 'key' }, ...Object.entries(words.picture.key).map(([name, text]) => el('li', { class: name }, text)))
    this.whole = el('div', {}, this.pick, this.picture, this.key, this.told, this.text)
    this.root = el('div', { 'data-torn': '' }, this.none, this.whole)
    this.picture.addEventListener('pointerdown', (event) => this.point(event))
    this.picture.addEventListener('pointermove', (event) => event.buttons && this.point(event))
    this.picture.addEventListener('keydown', (event) => {
      const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key]
      if (!by) return
      event.preventDefault()
      this.go(this.word + by)
    })
  }

  go(word) {
    const on = chosen(this.desk)
    this.word = Math.min(on.told.words.length - 1, Math.max(0, word))
    this.draw(on)
  }

  point({ clientY }) {
    const box = this.picture.getBoundingClientRect()
    this.go(Math.floor(((clientY - box.top) / box.height) * chosen(this.desk).told.words.length))
  }

  show() {
    const { words, paper } = this.desk
    const on = chosen(this.desk)
    this.none.hidden = Boolean(on)
    this.whole.hidden = !on
    if (!on) return
    const { names, papers, ways, budgets } = on
    this.pick.replaceChildren(
      choose('paper', words.paper, names.map((name) => [name, words.papers[name]]), this.desk.paper, (value) => this.desk.choose({ paper: value })),
      choose('way', words.way, ways.map((way) => [way, words.ways[way]]), this.desk.way, (way) => this.desk.choose({ way })),
      choose('budget', words.budget, budgets.map((budget) => [budget, budget]), this.desk.budget, (budget) => this.desk.choose({ budget })))
    this.word = Math.min(this.word, on.told.words.length - 1)
    if (paper !== this.desk.paper || !papers[paper]) this.word = Math.min(1, on.told.words.length - 1)
    this.draw(on)
  }

  resize() {
    const on = chosen(this.desk)
    if (on) this.draw(on)
  }

  draw({ told, paper }) {
    const { lab, words } = this.desk
    const row = told.prompt + this.word
    const there = (position) => told.gone[position] === null || told.gone[position] > this.word
    const seen = told.gone.slice(0, row).filter((_, position) => there(position)).length
    const fact = told.fact.filter(there).length
    Object.assign(this.root.dataset, { torn: told.way, budget: told.budget, word: this.word, seen, fact, of: row })
    this.picture.setAttribute('aria-valuemax', told.words.length)
    this.picture.setAttribute('aria-valuenow', this.word + 1)
    const values = { k: this.word + 1, word: visible(told.words[this.word]), seen: number(seen), of: number(row), fact, whole: told.fact.length }
    this.picture.setAttribute('aria-valuetext', fill(words.picture.told, values))
    this.told.replaceChildren(fill(this.word ? words.picture.told : words.picture.first, values), ' ', lab.tag())
    this.drawText(told, paper, there)
    this.drawPicture(told)
  }

  drawText(told, { text }, there) {
    this.text.hidden = !text
    if (!text) return
    const facts = new Set(text.fact)
    const [start, stop] = text.own
    this.text.replaceChildren(...text.tokens.map((token, position) => el('span', {
      class: [there(position) ? '' : 'torn', facts.has(position) ? 'fact' : '', position < start || position >= stop ? 'special' : ''].filter(Boolean).join(' '),
    }, token)))
  }

  drawPicture(told) {
    const width = this.picture.clientWidth
    if (!width) return
    const style = getComputedStyle(this.root)
    const colour = (name) => style.getPropertyValue(`--${name}`).trim()
    const rows = told.words.length
    const each = Math.max(9, Math.min(16, 260 / rows))
    const [w, h] = [Math.round(width * devicePixelRatio), Math.round(each * rows * devicePixelRatio)]
    Object.assign(this.canvas, { width: w, height: h })
    const context = this.canvas.getContext('2d')
    const across = w / told.columns
    const down = h / rows
    const x = (position) => Math.round(position * across)
    const facts = new Set(told.fact)
    const cell = (position, word, fill) => {
      context.fillStyle = fill
      context.fillRect(x(position), Math.round(word * down), Math.max(1, x(position + 1) - x(position)), Math.ceil(down) - 1)
    }
    for (let word = 0; word < rows; word++) {
      for (let position = 0; position < told.prompt + word && position < told.columns; position++) {
        const gone = told.gone[position] !== null && told.gone[position] <= word
        const ink = position < told.prompt ? colour('graphite') : colour('decode')
        if (facts.has(position)) cell(position, word, gone ? colour('stop') : colour('mark'))
        else if (gone) cell(position, word, colour('desk'))
        else cell(position, word, ink)
      }
    }
    context.strokeStyle = colour('ink')
    context.lineWidth = 2 * devicePixelRatio
    context.strokeRect(1, this.word * down, w - 2, down)
  }
}
