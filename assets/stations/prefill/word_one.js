/** From the last token's hidden state to the first word: the ten candidates, and what each layer would have said. */
import { button, el, fill, setText } from '../../scene/dom.js'
import { visible } from '../../scene/text.js'

const share = (value) => (value < 0.0005 ? '<0.1%' : `${(100 * value).toFixed(1)}%`)

export class WordOne {
  /** `desk`: {words, api, chose (the first `chose` event), label(position), prompt}. */
  constructor(desk) {
    const { words, chose, label, prompt } = desk
    this.desk = desk
    const most = Math.max(1e-9, chose.candidates[0]?.probability ?? 1)
    this.ask = button(words.word.ask, () => this.show(), { class: 'pill main', 'data-do': 'lens' })
    this.told = el('p', { class: 'caption', 'data-lens': '0' })
    this.table = el('table', { class: 'layers', hidden: true })
    this.root = el('div', { class: 'word-one' },
      el('p', {}, fill(words.word.from, { last: label(prompt - 1), word: shown(chose.token) })),
      el('ol', { class: 'ranking candidates' }, ...chose.candidates.map(({ id, text, probability }) =>
        el('li', { 'data-id': id, 'data-probability': probability, 'aria-current': id === chose.token.id },
          el('i', { style: `width: ${(100 * probability) / most}%` }), el('span', { dir: 'auto' }, visible(text)), el('b', {}, share(probability))))),
      this.ask, this.told, el('div', { class: 'wide' }, this.table))
  }

  async show() {
    const { desk } = this
    const { words } = desk
    this.ask.disabled = true
    try {
      const { layers } = await desk.api.lens()
      const head = [words.word.layer, words.word.rank, words.word.share, words.word.top]
      this.table.replaceChildren(el('thead', {}, el('tr', {}, ...head.map((name) => el('th', { scope: 'col' }, name)))),
        el('tbody', {}, ...layers.map((layer, index) => line(layer, index))))
      this.table.hidden = false
      this.told.dataset.lens = layers.length
      setText(this.told, fill(words.word.told, { word: shown(desk.chose.token) }))
    } catch (problem) {
      setText(this.told, problem.message || words.trouble)
      this.told.dataset.code = problem.code ?? ''
      this.ask.disabled = false
    }
  }
}

const shown = (token) => visible(token.text)

const line = ({ probability, rank, top }, index) =>
  el('tr', { 'data-layer': index, 'data-rank': rank, 'data-top': top[0].id, 'data-probability': top[0].probability },
    el('th', { scope: 'row' }, String(index + 1)), el('td', {}, String(rank + 1)), el('td', {}, share(probability)),
    el('td', {}, ...top.map((one) =>
      el('span', { class: 'said', dir: 'auto', title: share(one.probability), style: `--look: ${Math.round(100 * one.probability)}%` }, visible(one.text)))))
