/** Time per word over the run: bars to one scale, the reading band behind them, median and 95th percentile across. */
import { el, fill, setText, tag } from '../../scene/dom.js'
import { duration, number, visible } from '../../scene/text.js'
import { ticks } from '../shared/heat.js'
import { paceOf } from './loop.js'
import { lengths } from '../shared/rates.js'

export const BAND = [0.05, 0.1]
const BINS = 24

export const time = (seconds) => duration(seconds).join(' ')

export class Times {
  /** `desk`: {words, scene, loop, recorded, lang, k, onWord(k)}. */
  constructor(desk) {
    this.desk = desk
    this.told = el('p', { class: 'figures', 'data-times': true })
    this.pace = el('p', { class: 'caption' })
    this.plot = el('div', { class: 'plot', role: 'group', 'aria-label': desk.words.times.label })
    this.spread = el('div', { class: 'spread', 'aria-hidden': 'true' })
    this.key = el('p', { class: 'caption key' })
    this.cut = el('p', { class: 'caption' })
    this.root = el('div', { class: 'times' }, this.told,
      el('div', { class: 'plots' }, el('div', { class: 'scale', 'aria-hidden': 'true' }), this.plot, this.spread), this.key, this.cut, this.pace)
    this.scale = this.root.querySelector('.scale')
  }

  draw() {
    const { words, loop, scene, recorded } = this.desk
    const pace = paceOf(loop.words)
    this.root.querySelector('.plots').hidden = !pace
    if (!pace) return setText(this.told, words.times.none)
    const top = Math.max(1.3 * pace.p95, 1.15 * BAND[1])
    const kind = recorded ? 'recorded' : 'measured'
    const values = { median: time(pace.median), p95: time(pace.p95), tpot: time(pace.tpot) }
    this.told.replaceChildren(el('b', {}, fill(words.times.told, values)), ' ', tag(scene, kind))
    Object.assign(this.told.dataset, { n: pace.gaps.length, median: pace.median, p95: pace.p95, tpot: pace.tpot })
    this.bars(top)
    this.lines(pace, top)
    this.histogram(pace, top)
    this.rate(pace)
    const beyond = pace.gaps.filter((gap) => gap > top)
    setText(this.cut, beyond.length ? fill(words.times.cut, { n: beyond.length, time: time(pace.most) }) : '')
    const kinds = new Set(loop.words.filter((word) => word.gap !== null).map(kindOf))
    this.key.replaceChildren(...['own', 'cold', 'some_shared'].filter((name) => kinds.has(name)).map((name) =>
      el('span', {}, el('i', { class: `swatch ${name}` }), words.times[name])),
    el('span', {}, el('i', { class: 'swatch pace' }), words.times.band))
  }

  bars(top) {
    const { words, loop, k, onWord } = this.desk
    const timed = loop.words.map((word, at) => ({ ...word, at })).filter((word) => word.gap !== null)
    this.plot.replaceChildren(...timed.map((word) =>
      el('button', {
        type: 'button', class: `bar ${kindOf(word)}`, 'data-word': word.at, 'data-gap': word.gap, 'aria-current': word.at === k,
        'data-cut': word.gap > top, title: this.title(word, words), 'aria-label': this.title(word, words), onclick: () => onWord(word.at),
      }, el('i', { style: `height: ${Math.min(100, (100 * word.gap) / top)}%` }))))
  }

  title(word, words) {
    const said = fill(words.times.bar, { n: word.number, word: visible(word.token.text), time: time(word.gap) })
    const why = word.cold ? words.times.cold : word.step?.together > 1 ? fill(words.times.shared, { n: word.step.together - 1 }) : ''
    return why ? `${said} · ${why}` : said
  }

  lines(pace, top) {
    const { words } = this.desk
    const up = (seconds) => `${(100 * seconds) / top}%`
    const line = (name, seconds) => el('div', { class: `line ${name}`, style: `bottom: ${up(seconds)}` }, el('span', {}, words.times[name]))
    const band = `${1000 * BAND[0]}–${1000 * BAND[1]} ms`
    this.plot.append(el('div', { class: 'band', style: `bottom: ${up(BAND[0])}; height: ${up(BAND[1] - BAND[0])}` }, el('span', {}, band)))
    this.plot.append(line('median', pace.median), ...(pace.p95 - pace.median > 0.09 * top ? [line('p95', pace.p95)] : []))
    this.scale.replaceChildren(...ticks(0, 1000 * top, 5).map((at) => el('span', { style: `bottom: ${up(at / 1000)}` }, `${number(at)} ms`)))
  }

  histogram(pace, top) {
    const counts = new Array(BINS).fill(0)
    for (const gap of pace.gaps) counts[Math.min(BINS - 1, Math.floor((BINS * gap) / top))]++
    const most = Math.max(...counts)
    this.spread.replaceChildren(el('em', {}, this.desk.words.times.spread), ...counts.map((count, bin) =>
      el('i', { 'data-count': count, style: `bottom: ${(100 * bin) / BINS}%; height: calc(${100 / BINS}% - 1px); width: ${(100 * count) / most}%` })))
  }

  /** Words as a reader counts them, against the time they took. */
  rate(pace) {
    const { words, loop, lang } = this.desk
    const seconds = pace.gaps.reduce((sum, gap) => sum + gap, 0)
    const written = lengths(loop.text, lang).words
    setText(this.pace, fill(words.times.pace, { words: written, seconds: time(seconds), rate: Math.round((60 * written) / seconds) }))
  }
}

export const kindOf = (word) => (word.cold ? 'cold' : word.step?.together > 1 ? 'some_shared' : 'own')
