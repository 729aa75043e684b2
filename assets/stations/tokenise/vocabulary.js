/** Everything a tokenizer knows, searched. */
import { el, fill, setText } from '../../scene/dom.js'
import { number } from '../../scene/text.js'
import { asText, chip } from '../shared/pieces.js'

const PAUSE = 200 // milliseconds after the last key

export class Vocabulary {
  constructor(station) {
    this.station = station
    const { words } = station
    this.query = el('input', { name: 'query', type: 'search', maxlength: 100, dir: 'auto', placeholder: words.search_hint, 'aria-label': words.search })
    this.told = el('p', { class: 'hint', 'aria-live': 'polite' })
    this.hits = el('div', { class: 'chips hits', 'data-hits': '[]' })
    this.query.addEventListener('input', () => {
      clearTimeout(this.timer)
      this.timer = setTimeout(() => this.search(), PAUSE)
    })
    this.root = el('section', { class: 'sheet', 'aria-label': words.search },
      el('header', {}, el('h2', {}, words.search, el('span', {}, words.search_sub))), this.query, this.told, this.hits)
  }

  /** Search this model's vocabulary from now on. */
  use(model) {
    this.model = model
    if (this.query.value) this.search()
  }

  async search() {
    const { words } = this.station
    const query = this.query.value
    const turn = (this.turn = (this.turn ?? 0) + 1)
    this.hits.replaceChildren()
    this.hits.dataset.hits = '[]'
    setText(this.told, '')
    if (!query) return
    try {
      const { hits, found, size } = await this.station.ask(`vocabulary?${new URLSearchParams({ query, model: this.model })}`)
      if (turn !== this.turn) return
      const told = found > hits.length ? words.found_first : words.found
      setText(this.told, fill(told, { found: number(found), size: number(size), query, n: hits.length }))
      this.hits.dataset.hits = asText(hits)
      this.hits.replaceChildren(...hits.map((token, index) => chip({ ...words, piece: words.piece_alone }, token, index)))
    } catch (refusal) {
      if (turn === this.turn) setText(this.told, refusal.message)
    }
  }
}
