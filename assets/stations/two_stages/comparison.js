/** Prefill beside decode, row by row: what goes in, what is done, what it costs, and what people do about it. */
import { el, fill, tag } from '../../scene/dom.js'
import { number } from '../../scene/text.js'
import { joined, share, si, verdict } from './stages_data.js'

const ms = (seconds) => `${number(1000 * seconds, seconds < 0.1 ? 1 : 0)} ms`

export class Comparison {
  constructor({ words, scene }) {
    this.words = words
    this.scene = scene
    this.root = el('div', { class: 'wide' })
  }

  /** `stages` of `stagesOf`, `peaks` of this machine where the run was sat on it, or null; `cold`: the model's first run. */
  show({ prefill, decode, shared, reread }, peaks, recorded, cold) {
    const { words } = this
    const timed = recorded ? 'recorded' : 'measured'
    const rows = [
      this.row('input', '', (stage) => fill(words.table.tokens, { n: number(stage.tokens) }), (stage) => stage.tokens),
      this.said('kind'),
      this.row('flops', 'computed', (stage) => si(stage.flops, 'FLOP'), (stage) => stage.flops),
      ...['weights', 'cache_read', 'cache_written'].map((key) => this.row(key, 'computed', (stage) => (stage.bytes[key] ? si(stage.bytes[key], 'B') : words.table.none), (stage) => stage.bytes[key])),
      this.row('intensity', 'computed', (stage) => fill(words.table.per_byte, { n: stage.intensity.toPrecision(3) }), (stage) => stage.intensity),
      this.row('seconds', timed, (stage, key) => fill(words.table[`${key}_time`], { time: ms(stage.seconds), n: stage.passes }), (stage) => stage.seconds),
      this.row('per_token', timed, (stage) => ms(stage.seconds / stage.tokens), (stage) => stage.seconds / stage.tokens),
      this.row('rate', timed, (stage) => si(stage.rate, 'FLOP/s') + (peaks ? ` · ${share(stage.rate / peaks.compute.rate)}` : ''), (stage) => stage.rate),
      this.row('speed', timed, (stage) => si(stage.speed, 'B/s') + (peaks ? ` · ${share(stage.speed / peaks.bandwidth.rate)}` : ''), (stage) => stage.speed),
      this.row('bound', '', (stage) => this.bound(stage, peaks), (stage) => peaks && verdict(peaks, stage).share),
      this.said('parallel'),
      this.said('remedy'),
    ]
    const body = rows.map((row) => row({ prefill, decode }))
    const note = joined([peaks ? words.table.shares : words.table.no_shares, shared ? fill(words.table.shared, { n: shared }) : '', reread ? words.table.no_notes : decode ? '' : words.table.no_decode, cold && words.table.cold])
    this.root.replaceChildren(
      el('table', { class: 'comparison', 'data-comparison': true },
        el('thead', {}, el('tr', {}, el('th', {}), ...['prefill', 'decode'].map((stage) => el('th', { scope: 'col', class: stage }, words.stage[stage])))),
        el('tbody', {}, ...body)),
      el('p', { class: 'hint' }, note))
  }

  row(name, source, text, value) {
    return (stages) => el('tr', {}, el('th', { scope: 'row' }, this.words.table[name], ' ', source ? tag(this.scene, source, true) : ''),
      ...['prefill', 'decode'].map((stage) => (stages[stage]
        ? el('td', { 'data-cell': `${name}.${stage}`, 'data-value': value(stages[stage]) ?? '' }, text(stages[stage], stage))
        : el('td', {}, '–'))))
  }

  said(name) {
    return () => el('tr', { class: 'said' }, el('th', { scope: 'row' }, this.words.table[name]),
      ...['prefill', 'decode'].map((stage) => el('td', {}, this.words.table[`${name}_${stage}`])))
  }

  bound(stage, peaks) {
    if (!peaks) return this.words.table.later
    const { roof, share: part, bound } = verdict(peaks, stage)
    return fill(this.words.table[bound ? `by_${roof}` : 'by_neither'], { share: share(part), roof: this.words.table[roof] })
  }
}
