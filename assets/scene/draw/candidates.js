/** What the word was chosen from: the model's own likeliest tokens, before temperature and cuts. */
import { el, fill, rich, tag } from '../dom.js'
import { number, percent, visible } from '../text.js'
import { time } from './headline.js'

export class Candidates {
  constructor(scene) {
    this.scene = scene
    this.shown = ''
  }

  reset() {
    this.shown = ''
  }

  draw(moment) {
    const { view, parts, words, kind } = this.scene
    const hovered = view.word >= 0 && view.word < moment.words
    const index = hovered ? view.word : moment.words - 1
    // While the next word is being worked out, these are still the last one's: say so.
    const waiting = !hovered && moment.step >= 0 && moment.ink >= 1
    const next = waiting ? Math.min(this.scene.trace.layers, Math.floor(moment.rows) + 1) : 0
    const key = [index, hovered, waiting, next, kind, moment.phase === 'end'].join()
    if (key === this.shown) return
    this.shown = key
    const over = moment.phase === 'end'
    parts.candidates.className = `cands${hovered ? ' ten' : ''}${waiting ? ' waiting' : ''}${over ? ' over' : ''}`
    if (index < 0) return parts.candidates.replaceChildren(el('p', { class: 'none' }, words.answer.nothing))
    parts.candidates.replaceChildren(this.title(index, waiting, next), ...this.bars(index, hovered ? 10 : over ? 3 : 5))
  }

  title(index, waiting, next) {
    const { trace, words, kind } = this.scene
    const word = trace.words[index]
    const name = word.token.special ? words.answer.stop : visible(word.token.text)
    const before = trace.words[index - 1]
    const right = waiting
      ? el('span', {}, fill(words.answer.next, { layer: next, layers: trace.layers }))
      : el(
          'span',
          {
            title: this.hint(word),
          },
          ...(word.taken ? [words.answer.taken] : word.along ? [words.answer.along] : [time(before ? word.at - before.at : word.at), ' ', tag(words, kind, true)]),
        )
    return el(
      'h3',
      {},
      el('span', {}, ...rich(waiting ? words.answer.last : words.answer.chosen, { word: name })),
      right,
    )
  }

  hint({ rank, entropy, drafted }) {
    const { answer } = this.scene.words
    const told = `${fill(answer.rank, { n: rank + 1 })}, ${fill(answer.entropy, { bits: number(entropy, 2) })}`
    return drafted ? `${told}. ${answer.drafted}` : told
  }

  bars(index, count) {
    const { trace, words } = this.scene
    const word = trace.words[index]
    const rows = word.candidates.slice(0, count)
    if (word.rank >= rows.length)
      rows.splice(count - 1, 1, { id: word.token.id, text: word.token.text, probability: word.probability })
    return rows.map(({ id, text, probability }) => {
      const won = id === word.token.id
      const name = won && word.token.special ? words.answer.stop : visible(text)
      return el(
        'div',
        { class: `cand${won ? ' win' : ''}` },
        el('span', { dir: 'auto' }, name),
        el('i', { style: `width:${(probability * 100).toFixed(1)}%` }),
        el('span', {}, percent(probability)),
      )
    })
  }
}
