/**
 * Several people at one desk on one clock, played in the time it took: a chart of lanes (`views/figures/gantt.py`), what has
 * not happened yet under a veil, and who does what at the moment in a sentence.
 *
 * `show(people, {end})`: people [{name, label, arrived, chunks: [[start, stop, from, to]], words: [seconds]}]; the chart
 * shows the same people until the same `end`, and whoever shows them asks for it. The root is [data-desk] with data-at, data-end
 * and data-states: {NAME: away, waiting, reading, writing or done} at the moment on show.
 */
import { button, el, fill, setText } from '../../scene/dom.js'
import { number } from '../../scene/text.js'

export class Desk {
  /** `words`: of `desk` in the page's words; `say(t, people)` may tell the moment in other words; `step`: whether there are
   * buttons from one of the `stops` to the next. */
  constructor({ words, label, chart, say = () => '', step = false }) {
    Object.assign(this, { words, chart, say, people: [], at: 0, end: 0, stops: [] })
    this.toggle = button(words.play, () => this.play(), { class: 'pill main', 'data-do': 'play' })
    this.scrub = el('input', { type: 'range', min: 0, max: 1000, value: 1000, 'aria-label': words.scrub, 'data-do': 'scrub', oninput: () => { this.halt(); this.to((this.end * +this.scrub.value) / 1000) } })
    this.clock = el('output', { class: 'clock' })
    this.told = el('p', { class: 'told', 'aria-live': 'off' })
    this.veil = el('i', { class: 'veil', hidden: true })
    this.seen = el('div', { class: 'clocked', role: 'group', 'aria-label': label }, chart.root, this.veil)
    chart.onDrawn = () => this.lie()
    this.root = el('div', { class: 'seats', 'data-desk': '' }, el('link', { rel: 'stylesheet', href: new URL('desk.css', import.meta.url).href }),
      el('div', { class: 'row' }, this.toggle, ...(step ? [this.mover('back', '‹', -1), this.mover('step', '›', 1)] : []), this.scrub, this.clock), this.told, this.seen)
  }

  /** Others, or the same served in another way: drawn anew, at the moment asked for (the end without). */
  show(people, { end, at = end, stops = [] }) {
    Object.assign(this, { people, end, stops })
    this.root.dataset.end = end
    this.to(this.frame ? this.at : at)
  }

  mover(name, sign, way) {
    return button(sign, () => {
      this.halt()
      const next = way > 0 ? this.stops.find((t) => t > this.at + 1e-9) : this.stops.findLast((t) => t < this.at - 1e-9)
      this.to(next ?? (way > 0 ? this.end : 0))
    }, { class: 'pill', 'data-do': name, 'aria-label': this.words[name] })
  }

  /** The veil lies over the chart's own paper, from the moment on. */
  lie() {
    const { frame } = this.chart
    if (!this.heard) {
      this.heard = true
      frame.on('plotly_afterplot', () => this.lie())
    }
    const { l, t, w, h } = frame._fullLayout._size // Plotly tells its paper's place nowhere else
    const share = this.end ? this.at / this.end : 1
    const across = frame.offsetLeft + l + share * w
    Object.assign(this.veil.style, { left: `${across}px`, width: `${(1 - share) * w}px`, top: `${frame.offsetTop + t}px`, height: `${h}px` })
    this.veil.hidden = false
  }

  /** The longest wait for a word while somebody else, who came at `arrived`, waited for a first one at `late`. */
  static gap(words, arrived, late) {
    const pairs = words.slice(1).map((at, i) => [words[i], at]).filter(([a, b]) => b > arrived && a < late)
    return pairs.length ? pairs.reduce((most, pair) => (pair[1] - pair[0] > most[1] - most[0] ? pair : most)) : null
  }

  /** What a person does at `t`: {doing, part, of, words}. */
  static at({ arrived, chunks, words }, t) {
    const written = words.filter((one) => one <= t).length
    if (t < arrived) return { doing: 'away', written }
    if (words.length && t >= words.at(-1)) return { doing: 'done', written }
    if (written) return { doing: 'writing', written }
    const part = chunks.filter(([start]) => start <= t).length
    return part ? { doing: 'reading', part, of: chunks.length, written } : { doing: 'waiting', written }
  }

  to(t) {
    this.at = Math.max(0, Math.min(this.end, t))
    this.root.dataset.at = this.at
    this.scrub.value = Math.round((1000 * this.at) / this.end)
    setText(this.clock, `${number(this.at, 2)} s`)
    const doing = this.people.map((one) => ({ ...one, ...Desk.at(one, this.at) }))
    this.root.dataset.states = JSON.stringify(Object.fromEntries(doing.map(({ name, doing: what }) => [name, what])))
    if (this.heard) this.lie()
    setText(this.told, this.say(this.at, doing) || this.sentence(doing))
  }

  /** Who reads, who writes, who waits. */
  sentence(doing) {
    const { now } = this.words
    const said = ['reading', 'writing', 'waiting'].map((what) => [what, doing.filter((one) => one.doing === what).map(({ label, name }) => label ?? name)])
      .filter(([, names]) => names.length).map(([what, names]) => fill(now[what], { who: names.join(now.and) }))
    return said.length ? said.join(' ') : now[doing.every((one) => one.doing === 'done') ? 'over' : 'nobody']
  }

  /** From here on, or from the beginning where it is over, in the time it took. */
  play() {
    if (this.frame) return this.halt()
    const from = this.at >= this.end ? 0 : this.at
    setText(this.toggle, this.words.pause)
    const begin = performance.now()
    const frame = (now) => {
      this.to(from + Math.max(0, now - begin) / 1000)
      if (this.at >= this.end) return this.halt()
      this.frame = requestAnimationFrame(frame)
      return undefined
    }
    this.frame = requestAnimationFrame(frame)
    return undefined
  }

  halt() {
    cancelAnimationFrame(this.frame)
    this.frame = null
    setText(this.toggle, this.words.play)
  }

  close() {
    cancelAnimationFrame(this.frame)
    this.chart.close()
  }
}
