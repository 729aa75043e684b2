// @ts-check
/**
 * What was set aside, to one scale: the part that holds notes full, the part that stays empty hatched.
 *
 * `rooms(rows, {say, tag})`: rows [{label, sides: [{name, mark, label, used, all}]}]. Each bar tells its values:
 * [data-room=NAME] with data-used and data-all.
 */
import { el } from '../../scene/dom.js'

/** @typedef {{name: string, mark: string, label: string, used: number, all: number}} Side */

/** @param {{label: string, sides: Side[]}[]} rows @param {{say: (used: number, all: number) => string, tag: () => Node}} how */
export function rooms(rows, { say, tag }) {
  const top = Math.max(1, ...rows.flatMap(({ sides }) => sides.map(({ all }) => all)))
  /** @param {Side} side */
  const bar = ({ name, mark, label, used, all }) => el('div', { class: `bar ${mark}`, 'data-room': name, 'data-used': used, 'data-all': all },
    el('span', { class: 'which' }, label),
    el('span', { class: 'track bare' }, el('i', { class: 'held', style: `width: ${(100 * all) / top}%` }, el('i', { style: `width: ${(100 * used) / all}%` }))),
    el('span', { class: 'says' }, say(used, all), ' ', tag()))
  return el('div', { class: 'bars' }, ...rows.map(({ label, sides }) => el('div', { class: 'bar-row' }, el('b', {}, label), el('div', {}, ...sides.map(bar)))))
}
