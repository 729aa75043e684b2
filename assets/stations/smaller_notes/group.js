/**
 * One real group of 64 numbers of a head's K, squeezed step by step: the numbers, their least and most, the grid between
 * them, the nearest line for each, and what is read back.
 */
import { button, el, fill, setText, svg } from '../../scene/dom.js'
import { number } from '../../scene/text.js'
import { choose } from '../lab/kept_answers.js'

const STEPS = ['numbers', 'range', 'grid', 'codes', 'back']
const WAYS = ['int8', 'int4', 'int2', 'fp8']

export class Group {
  constructor(desk) {
    this.desk = desk
    this.step = 0
    this.layer = 0
    const { words } = desk
    this.none = el('p', { class: 'hint' }, words.group.none)
    this.pick = el('div', { class: 'row options' })
    this.back = button(words.group.back, () => this.go(-1), { class: 'pill', 'data-do': 'group-back' })
    this.on = button(words.group.on, () => this.go(1), { class: 'pill main', 'data-do': 'group-on' })
    this.told = el('p', { class: 'told', 'aria-live': 'polite' })
    this.plot = el('div', { class: 'plot group' })
    this.codes = el('p', { class: 'codes', dir: 'ltr' })
    this.sum = el('p', { class: 'hint' })
    this.whole = el('div', {}, this.pick, el('div', { class: 'row' }, this.back, this.on, this.told), this.plot, this.codes, this.sum)
    this.root = el('div', { 'data-group': '' }, this.none, this.whole)
  }

  go(by) {
    this.step = Math.min(STEPS.length - 1, Math.max(0, this.step + by))
    this.show()
  }

  show() {
    const { lab, words, way } = this.desk
    const group = lab.figures?.group
    this.none.hidden = Boolean(group)
    this.whole.hidden = !group
    if (!group) return
    const again = (change) => (value) => { change(value); this.show() }
    this.pick.replaceChildren(
      choose('dtype', words.way, WAYS.map((one) => [one, words.ways[one]]), way, again((value) => { this.desk.way = value })),
      choose('layer', words.group.layer, group.layers.map(({ layer }, i) => [String(i), number(layer + 1)]), String(this.layer), again((value) => { this.layer = +value })))
    this.draw()
  }

  resize() {
    if (this.desk.lab.figures?.group) this.draw()
  }

  draw() {
    const { lab, words, way } = this.desk
    const { group } = lab.figures
    const { exact, ways, layer } = group.layers[this.layer]
    const squeezed = ways[way]
    const step = STEPS[this.step]
    const [low, high] = [Math.min(...exact), Math.max(...exact)]
    const worst = Math.max(...exact.map((value, i) => Math.abs(value - squeezed.read[i])))
    const values = {
      token: group.token.trim() || group.token, layer: layer + 1, n: exact.length, low: number(low, 2), high: number(high, 2), scale: number(squeezed.scale, 4),
      levels: squeezed.levels?.length ?? 256, worst: number(worst, 3), bytes: squeezed.bytes, exact: squeezed.exact_bytes,
    }
    const template = words.group[way]?.[step] ?? words.group.steps[step]
    setText(this.told, fill(template, values))
    this.back.disabled = this.step === 0
    this.on.disabled = this.step === STEPS.length - 1
    Object.assign(this.root.dataset, { group: step, dtype: way, codes: JSON.stringify(squeezed.codes), low: squeezed.low ?? '', scale: squeezed.scale })
    this.codes.hidden = this.step < 3
    this.codes.replaceChildren(...squeezed.codes.map((code) => el('span', {}, String(code))))
    this.sum.replaceChildren(fill(words.group.sum, values), ' ', lab.tag())
    this.picture(exact, squeezed, { low, high })
  }

  picture(exact, { read, levels, low: zero, scale }, { low, high }) {
    const width = this.plot.clientWidth
    if (!width) return
    const { words, way } = this.desk
    const size = 0.82 * parseFloat(getComputedStyle(this.plot).fontSize)
    const [left, right, height] = [4.4 * size, size, Math.max(220, Math.min(22 * size, width * 0.32))]
    const [top, bottom] = [1.6 * size, height - 1.4 * size]
    const least = Math.min(low, ...read)
    const most = Math.max(high, ...read)
    const x = (i) => left + ((i + 0.5) / exact.length) * (width - left - right)
    const y = (value) => bottom - ((value - least) / (most - least || 1)) * (bottom - top)
    const across = (value, name) => svg('line', { class: name, x1: left, x2: width - right, y1: y(value), y2: y(value) })
    const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': words.group.label })
    picture.append(svg('line', { class: 'grid', x1: left, x2: width - right, y1: y(0), y2: y(0) }), svg('text', { class: 'tick', x: left - 6, y: y(0) + 4, 'text-anchor': 'end' }, '0'))
    if (this.step >= 1) for (const value of [low, high]) picture.append(across(value, 'range'), svg('text', { class: 'axis', x: left - 6, y: y(value) + 4, 'text-anchor': 'end' }, number(value, 1)))
    if (this.step >= 2) {
      // Of 256 lines only a band would be seen: every eighth stands for them.
      const lines = levels ?? (way === 'fp8' ? [] : Array.from({ length: 32 }, (_, i) => zero + scale * 8 * i))
      picture.append(...lines.map((value) => across(value, 'level')))
    }
    exact.forEach((value, i) => {
      if (this.step >= 3) picture.append(svg('line', { class: 'off', x1: x(i), x2: x(i), y1: y(value), y2: y(read[i]) }))
      if (this.step < 4) picture.append(svg('circle', { class: 'exact', cx: x(i), cy: y(value), r: 0.3 * size }))
      if (this.step === 4) picture.append(svg('circle', { class: 'exact ghost', cx: x(i), cy: y(value), r: 0.3 * size }))
      if (this.step >= 3) picture.append(svg('rect', { class: 'read', x: x(i) - 0.24 * size, y: y(read[i]) - 0.24 * size, width: 0.48 * size, height: 0.48 * size }))
    })
    this.plot.replaceChildren(picture)
  }
}
