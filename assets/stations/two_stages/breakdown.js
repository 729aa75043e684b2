/** Where a stage's work is and where its seconds go, by operation: the work computed, the seconds measured on a copy. */
import { el, fill, tag } from '../../scene/dom.js'
import { number } from '../../scene/text.js'
import { PARTS, joined, share, si } from './stages_data.js'

export class Breakdown {
  constructor({ words, scene }) {
    this.words = words
    this.scene = scene
    this.root = el('div', { class: 'breakdown' })
  }

  /** `stages`: {prefill, decode} of `stagesOf`; `measured`: {prefill, decode} as `/measures` keeps them, or undefined. */
  show(stages, measured) {
    const { words } = this
    const rows = ['prefill', 'decode'].filter((stage) => stages[stage]).flatMap((stage) => {
      const timed = measured[stage]
      return [
        el('h3', {}, words.stage[stage]),
        this.bar(stage, 'flops', stages[stage].parts, PARTS, words.parts.flops, si(stages[stage].flops, 'FLOP'), 'computed'),
        timed
          ? this.bar(stage, 'seconds', timed.parts, [...PARTS, 'rest'], words.parts.seconds, `${number(1000 * timed.timed, 1)} ms`, 'measured')
          : el('p', { class: 'hint' }, words.parts.unmeasured),
        timed ? el('p', { class: 'hint', 'data-calls': timed.calls, 'data-stage': stage }, this.overhead(timed)) : '',
      ]
    })
    const key = el('ul', { class: 'key', 'aria-hidden': 'true' }, ...[...PARTS, 'rest'].map((part) => el('li', { class: part }, words.parts[part])))
    this.root.replaceChildren(key, ...rows, this.table(stages, measured))
  }

  overhead({ calls, seconds, timed, busy }) {
    const { words } = this
    const said = fill(words.parts.calls, { calls: number(calls), each: number((1e6 * seconds) / calls, 0), plain: number(1000 * seconds, 1), timed: number(1000 * timed, 1) })
    return joined([said, busy > 0.1 && fill(words.measuring.busy, { cores: number(busy, 1) })])
  }

  bar(stage, kind, values, parts, label, total, source) {
    const whole = parts.reduce((sum, part) => sum + values[part], 0)
    const pieces = parts.map((part) => {
      const part_share = values[part] / whole
      const text = part_share > 0.09 ? `${this.words.parts[part]} ${share(part_share)}` : ''
      return el('span', { class: part, style: `width: ${100 * part_share}%`, title: `${this.words.parts[part]} ${share(part_share)}`, 'data-part': part, 'data-value': values[part] }, text)
    })
    return el('div', { class: 'strip', 'data-stage': stage, 'data-kind': kind }, el('b', {}, label, ' ', tag(this.scene, source)), el('div', { class: 'stack', 'aria-hidden': 'true' }, ...pieces), el('i', {}, total))
  }

  /** The same in figures, for those who do not see the bars. */
  table(stages, measured) {
    const { words } = this
    const head = el('tr', {}, el('th', {}), ...['prefill', 'decode'].flatMap((stage) => [el('th', { scope: 'col' }, `${words.stage[stage]}, FLOP`), el('th', { scope: 'col' }, `${words.stage[stage]}, ms`)]))
    const cells = (stage, part) => [
      part === 'rest' ? '–' : si(stages[stage]?.parts[part] ?? 0, ''),
      measured[stage] ? number(1000 * measured[stage].parts[part], 2) : '–',
    ]
    const rows = [...PARTS, 'rest'].map((part) => el('tr', {}, el('th', { scope: 'row' }, words.parts[part]), ...['prefill', 'decode'].flatMap((stage) => cells(stage, part)).map((text) => el('td', {}, text))))
    return el('details', {}, el('summary', {}, words.parts.figures), el('div', { class: 'wide' }, el('table', {}, el('thead', {}, head), el('tbody', {}, ...rows))))
  }
}
