/**
 * Measures pieces of this machine one after another, with progress and a stop. The service keeps each result; a piece
 * that has begun is a fraction of a second long, so a stop only has to leave the rest out.
 */
import { button, el, fill, setText } from '../../scene/dom.js'

export class Measuring {
  /** `onResult(name, result, piece)` hears each. Several on a page share `desk`, so that only one goes on at a time. */
  constructor({ words, errors, base, lang, desk, label, again, name, onResult }) {
    Object.assign(this, { words, errors, base, lang, desk, label, again, onResult })
    this.start = button(label, () => this.run(), { class: 'pill main', 'data-do': name })
    this.halt = button(words.measuring.stop, () => this.stop(), { class: 'pill halt', 'data-do': `${name}-stop`, hidden: true })
    this.bar = el('progress', { max: 1, value: 0, 'aria-label': words.measuring.progress, hidden: true })
    this.told = el('p', { class: 'hint', 'aria-live': 'polite', 'data-measure': name })
    this.root = el('div', { class: 'measuring' }, el('div', { class: 'row' }, this.start, this.halt, this.bar), this.told)
    this.state('idle', '')
  }

  state(state, text) {
    this.told.dataset.state = state
    setText(this.told, text)
  }

  /** What to measure: a function that gives the bodies of the requests. */
  plan(pieces, done) {
    this.pieces = pieces
    setText(this.start, done ? this.again : this.label)
    this.start.disabled = !pieces
  }

  async run() {
    if (this.desk.measuring) return this.state('failed', this.words.measuring.other)
    const pieces = this.pieces()
    this.desk.measuring = this
    this.stopped = false
    this.going(true)
    let done = 0
    try {
      for (const piece of pieces) {
        this.bar.value = done / pieces.length
        this.state('running', this.says(piece, done, pieces.length))
        await this.one(piece)
        if (this.stopped) break
        done += 1
      }
      this.ended(this.stopped ? 'stopped' : 'finished', done, pieces.length)
    } catch (problem) {
      if (this.stopped) this.ended('stopped', done, pieces.length)
      else this.failed(problem, done, pieces.length)
    }
    this.desk.measuring = null
    this.going(false)
  }

  /** A piece, unless it cannot be measured and may be passed over. */
  async one(piece) {
    this.at?.(piece)
    try {
      const { name, result } = await this.post(piece)
      if (!this.stopped) await this.onResult(name, result, piece)
    } catch (problem) {
      if (this.stopped || !this.passOver(piece, problem)) throw problem
    }
  }

  says(piece, done, of) {
    return fill(this.words.measuring.going, { n: done + 1, of, what: this.words.measuring.what[piece.kind] })
  }

  passOver() {
    return false
  }

  ended(state, done, of) {
    this.state(state, fill(this.words.measuring[state], { n: done, of }))
  }

  failed(problem) {
    this.state('failed', problem.message || this.words.unreachable)
  }

  going(on) {
    this.start.hidden = on
    this.halt.hidden = this.bar.hidden = !on
  }

  async post(piece) {
    this.abort = new AbortController()
    const reply = await fetch(`${this.base}/api/measures`, {
      method: 'POST', signal: this.abort.signal, body: JSON.stringify(piece),
      headers: { 'Content-Type': 'application/json', 'Accept-Language': this.lang },
    })
    const json = await reply.json()
    if (!reply.ok) throw json.error
    return json
  }

  stop() {
    this.stopped = true
    this.abort?.abort()
  }
}
