// @ts-check
/**
 * Before and after as bars to one scale, each with its spread as a whisker: what a lab measured, without a chart library.
 *
 * `bars(rows, {say, tag})`: rows [{label, sides: [{name, mark, label, middle, low, high}]}]; a side not measured yet has
 * `middle` null. `mark` is `before` or `after`. Each bar tells its value: [data-bar=NAME] with data-value.
 */
import { el } from '../../scene/dom.js'

/**
 * @typedef {{name: string, mark: string, label: string, middle: number | null | undefined, low?: number, high?: number, missing?: string}} Side
 * @typedef {{label: string, sides: Side[]}} Row
 */

/** @param {Row[]} rows @param {{say: (value: number) => string, tag?: () => Node, most?: number}} how */
export function bars(rows, { say, tag, most = 0 }) {
  const top = Math.max(1e-12, most, ...rows.flatMap(({ sides }) => sides.map((side) => side.high ?? side.middle ?? 0)))
  /** @param {number} value */
  const share = (value) => `${(100 * value) / top}%`
  /** @param {Side} side */
  const bar = ({ name, mark, label, middle, low = middle ?? 0, high = middle ?? 0, missing = '–' }) => {
    const known = middle !== null && middle !== undefined
    return el('div', { class: `bar ${mark}`, 'data-bar': name, 'data-value': known ? middle : '', 'data-low': known ? low : '', 'data-high': known ? high : '' },
      el('span', { class: 'which' }, label),
      el('span', { class: 'track' }, ...(known ? [el('i', { style: `width: ${share(middle)}` }), ...(high > low ? [el('u', { style: `left: ${share(low)}; width: ${share(high - low)}` })] : [])] : [])),
      el('span', { class: 'says' }, known ? say(middle) : missing, ...(known && tag ? [' ', tag()] : [])))
  }
  return el('div', { class: 'bars' }, ...rows.map(({ label, sides }) =>
    el('div', { class: 'bar-row' }, el('b', {}, label), el('div', {}, ...sides.map(bar)))))
}
