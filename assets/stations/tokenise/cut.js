/** One tokenizer at work on the text: its chips, how long it took, and the proof that nothing was lost. */
import { el, fill, setText, tag } from '../../scene/dom.js'
import { number } from '../../scene/text.js'
import { asText, chips, DRAWN, roundTrip } from '../shared/pieces.js'

const LATE = 400 // milliseconds after which an answer is waited for visibly

export class Cut {
  /** `station` as in station.js; `name` tells this cut from others in the page's text. */
  constructor(station, name) {
    this.station = station
    this.words = station.words
    this.turn = 0
    this.count = el('p', { class: 'count-line', 'aria-live': 'polite' })
    this.round = el('p', { class: 'round' })
    this.trouble = el('p', { class: 'refusal', role: 'alert', hidden: true })
    this.sheet = el('div', { class: 'chips', 'data-cut': name, role: 'group', tabindex: 0, 'aria-label': this.words[{ first: 'bench', other: 'beside' }[name]] })
    this.root = el('div', { class: 'cut' }, this.count, this.trouble, this.sheet, this.round)
  }

  /**
   * Have `request` (the body of `POST /api/tokenise`) cut and drawn; an answer that a later one overtook is dropped. While
   * the model is busy the chips of the text before are paler and said to be those.
   */
  async show(request) {
    const turn = (this.turn += 1)
    clearTimeout(this.late)
    this.late = setTimeout(() => this.stale(), LATE)
    try {
      const cut = await this.station.ask('tokenise', request)
      if (turn === this.turn) this.draw(cut, 'measured')
      return cut
    } catch (refusal) {
      if (turn === this.turn) this.refuse(refusal)
      return null
    }
  }

  refuse({ code, message }) {
    this.blank()
    this.trouble.hidden = false
    this.trouble.dataset.code = code
    setText(this.trouble, message)
  }

  stale() {
    if (!this.sheet.childElementCount) return
    this.root.dataset.stale = 'true'
    setText(this.count, this.words.stale)
  }

  blank() {
    clearTimeout(this.late)
    delete this.root.dataset.stale
    this.trouble.hidden = true
    this.trouble.dataset.code = ''
    this.count.replaceChildren()
    this.round.replaceChildren()
    this.sheet.replaceChildren()
    for (const key of ['tokens', 'own', 'seconds', 'round', 'model', 'source']) delete this.sheet.dataset[key]
  }

  draw(cut, source) {
    const { words, sheet, station } = this
    this.blank()
    const { tokens, own_start, own_stop, seconds } = cut
    const proof = roundTrip(cut)
    Object.assign(sheet.dataset, {
      tokens: asText(tokens), own: `${own_start} ${own_stop}`, seconds, round: proof.equal ? 'equal' : 'different', model: cut.model, source,
    })
    sheet.replaceChildren(...chips(words, cut))
    if (tokens.length > DRAWN) sheet.append(el('p', {}, fill(words.more, { n: number(DRAWN), all: number(tokens.length) })))
    const own = own_stop - own_start
    const rest = tokens.length - own
    this.count.append(
      el('strong', {}, fill(own === 1 ? words.tokens_one : words.tokens, { n: number(own) })),
      rest ? fill(words.and_marks, { n: number(rest) }) : '', ' · ', fill(words.took, { time: number(seconds * 1e6) }), ' ', tag(station.options.scene, source))
    const figures = { ids: number(proof.ids), bytes: number(proof.bytes), characters: number(proof.characters) }
    this.round.className = `round ${proof.equal ? 'good' : 'bad'}`
    setText(this.round, fill(proof.equal ? words.round_equal : words.round_different, figures))
  }
}
