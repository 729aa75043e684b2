/**
 * Two sheets that type at any pace after any wait, in the browser: no model writes here, and it says so. One minute of
 * 50 against 200 milliseconds tells more than any number.
 */
import { button, el, fill, setText, tag } from '../../scene/dom.js'
import { number } from '../../scene/text.js'
import { at } from './sweep.js'

const BEGIN = [{ ttft: 0.5, tpot: 50 }, { ttft: 0.5, tpot: 200 }]

export class Feel {
  constructor({ words, scene }) {
    this.words = words
    // Pieces about as long as tokens: a word with its space; where words have no spaces, a character.
    this.pieces = words.feel.text.match(/\p{Script=Han}|[^\s\p{Script=Han}]+\s*|\s+/gu)
    this.panes = BEGIN.map((begin, index) => this.pane(index, begin))
    this.start = button(words.feel.start, () => this.type(), { class: 'pill main', 'data-do': 'feel' })
    this.halt = button(words.feel.stop, () => this.stop(), { class: 'pill halt', 'data-do': 'feel-stop', hidden: true })
    this.mine = button(words.feel.own, () => this.take(), { class: 'pill', 'data-do': 'feel-own', hidden: true })
    this.root = el('div', {}, el('div', { class: 'row' }, this.start, this.halt, this.mine, tag({ provenance: words.feel.provenance }, 'simulated')),
      el('div', { class: 'two lanes' }, ...this.panes.map((pane) => pane.root)))
  }

  pane(index, begin) {
    const { words } = this
    const range = (name, min, max, step, value) => {
      const input = el('input', { type: 'range', min, max, step, value, 'data-feel': `${name}-${index}` })
      const told = el('output', {})
      const tell = () => setText(told, name === 'ttft' ? `${number(Number(input.value), 1)} s` : fill(words.feel.pace, { ms: input.value, words: number((0.75 * 60_000) / input.value) }))
      input.addEventListener('input', tell)
      tell()
      return { input, tell, label: el('label', {}, words.feel[name], input, told) }
    }
    const ttft = range('ttft', 0, 10, 0.1, begin.ttft)
    const tpot = range('tpot', 5, 500, 5, begin.tpot)
    const sheet = el('p', { class: 'answer', 'data-typed': 0, lang: words.feel.lang })
    return { ttft, tpot, sheet, root: el('div', { class: `lane ${index ? 'none' : 'notes'}`, 'data-pane': index }, el('div', { class: 'row' }, ttft.label), el('div', { class: 'row' }, tpot.label), sheet) }
  }

  /** This machine's own waits, where they are known. */
  own(fits, waits) {
    this.known = fits.ttft && fits.tpot ? { ttft: at(fits.ttft, waits[0].prompt), tpot: 1000 * at(fits.tpot, waits[0].prompt) } : null
    this.mine.hidden = !this.known
  }

  take() {
    const [pane] = this.panes
    pane.ttft.input.value = this.known.ttft
    pane.tpot.input.value = this.known.tpot
    pane.ttft.tell()
    pane.tpot.tell()
  }

  type() {
    const begin = performance.now()
    this.going(true)
    const frame = (now) => {
      let writing = false
      for (const { ttft, tpot, sheet } of this.panes) {
        const since = now - begin - 1000 * Number(ttft.input.value)
        const count = since < 0 ? 0 : Math.min(this.pieces.length, 1 + Math.floor(since / Number(tpot.input.value)))
        if (Number(sheet.dataset.typed) !== count || !count) setText(sheet, this.pieces.slice(0, count).join(''))
        sheet.dataset.typed = count
        writing ||= count < this.pieces.length
      }
      if (writing && !this.over) this.frame = requestAnimationFrame(frame)
      else this.going(false)
    }
    this.over = false
    this.frame = requestAnimationFrame(frame)
  }

  going(on) {
    this.start.hidden = on
    this.halt.hidden = !on
  }

  stop() {
    this.over = true
  }

  close() {
    this.over = true
    cancelAnimationFrame(this.frame)
  }
}
