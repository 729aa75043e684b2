/**
 * Several people at one desk on one clock: a row each, time to the right. Dashed while somebody waits, a block for each
 * pass that reads, a tick for each word; what has not happened yet is under a veil. Played in the time it took.
 *
 * `show(people, {end})`: people [{name, label, arrived, began, chunks: [[start, stop, from, to]], words: [seconds], gap:
 * [start, stop, text]}]. The root is [data-desk] with data-at and data-end; [data-who=NAME] tells data-arrived, data-first,
 * data-words, and data-state at the moment on show: away, waiting, reading, writing, done.
 */
import { button, el, fill, setText } from '../../scene/dom.js'
import { decimals, niceStep } from '../../scene/draw/ruler.js'
import { number } from '../../scene/text.js'

export class Desk {
  /** `words`: of `desk` in the page's words; `say(t, people)` may tell the moment in other words; `step`: whether there are
   * buttons from one of the `stops` to the next. */
  constructor({ words, label, say = () => '', step = false }) {
    Object.assign(this, { words, say, people: [], at: 0, end: 0, stops: [] })
    this.toggle = button(words.play, () => this.play(), { class: 'pill main', 'data-do': 'play' })
    this.scrub = el('input', { type: 'range', min: 0, max: 1000, value: 1000, 'aria-label': words.scrub, 'data-do': 'scrub', oninput: () => { this.halt(); this.to((this.end * +this.scrub.value) / 1000) } })
    this.clock = el('output', { class: 'clock' })
    this.told = el('p', { class: 'told', 'aria-live': 'off' })
    this.rows = el('div', { class: 'rows', role: 'img', 'aria-label': label })
    this.axis = el('div', { class: 'axis' })
    this.key = el('ul', { class: 'seats-key' }, ...['waits', 'reads', 'writes'].map((name) => el('li', { class: name }, words.key[name])))
    this.root = el('div', { class: 'seats', 'data-desk': '' }, el('link', { rel: 'stylesheet', href: new URL('desk.css', import.meta.url).href }),
      el('div', { class: 'row' }, this.toggle, ...(step ? [this.mover('back', '‹', -1), this.mover('step', '›', 1)] : []), this.scrub, this.clock), this.told, this.rows, this.axis, this.key)
  }

  /** Others, or the same served in another way: drawn anew, at the moment asked for (the end without). */
  show(people, { end, at = end, stops = [] }) {
    Object.assign(this, { people, end, stops })
    this.root.dataset.end = end
    this.rows.replaceChildren(...people.map((one) => this.person(one)))
    this.axis.replaceChildren(...this.ticks())
    this.to(this.frame ? this.at : at)
  }

  mover(name, sign, way) {
    return button(sign, () => {
      this.halt()
      const next = way > 0 ? this.stops.find((t) => t > this.at + 1e-9) : this.stops.findLast((t) => t < this.at - 1e-9)
      this.to(next ?? (way > 0 ? this.end : 0))
    }, { class: 'pill', 'data-do': name, 'aria-label': this.words[name] })
  }

  share(seconds) {
    return `${(100 * seconds) / this.end}%`
  }

  person({ name, label = name, arrived, chunks, words, gap }) {
    const first = chunks[0]?.[0] ?? words[0] ?? this.end
    const part = (kind, a, b, more = {}) => el('i', { class: kind, style: `left: ${this.share(a)}; width: ${this.share(Math.max(0, b - a))}`, ...more })
    const read = chunks.length ? chunks.at(-1)[1] : first
    return el('div', { class: 'who', 'data-who': name, 'data-arrived': arrived, 'data-first': words[0] ?? '', 'data-words': words.length },
      el('b', {}, label),
      el('span', { class: 'time' },
        ...(first > arrived ? [part('waits', arrived, first)] : []),
        ...(chunks.length > 1 ? [part('between', first, read)] : []),
        ...chunks.map(([a, b, from, to]) => part('reads', a, b, { title: fill(this.words.chunk, { from: number(from + 1), to: number(to), time: number(1000 * (b - a)) }) })),
        ...(words.length > 1 ? [part('writes', words[0], words.at(-1))] : []),
        ...words.map((at) => el('u', { style: `left: ${this.share(at)}` })),
        ...(gap ? [el('em', { class: 'gap', style: `left: ${this.share(gap[0])}; width: ${this.share(gap[1] - gap[0])}` }, el('span', {}, gap[2]))] : []),
        el('s', { class: 'veil' })))
  }

  ticks() {
    const step = niceStep(this.end / 6)
    const count = Math.floor(this.end / step + 1e-9)
    return Array.from({ length: count + 1 }, (_, i) => el('span', { style: `left: ${this.share(i * step)}` }, `${number(i * step, decimals(step))}${i === count ? ' s' : ''}`))
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
    this.root.style.setProperty('--at', this.share(this.at))
    this.scrub.value = Math.round((1000 * this.at) / this.end)
    setText(this.clock, `${number(this.at, 2)} s`)
    const doing = this.people.map((one) => ({ ...one, ...Desk.at(one, this.at) }))
    doing.forEach(({ name, doing: what }) => { this.rows.querySelector(`[data-who="${name}"]`).dataset.state = what })
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
  }
}
