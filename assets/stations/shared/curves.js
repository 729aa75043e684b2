/**
 * A small chart with linear axes from 0: measured points, lines through them or fitted, and bands across.
 *
 * `series`: [{name, label, mark, points: [[x, y], …], line, dots}]; `bands`: [{name, label, from, to}] on the y axis.
 * Every series stands as data too: [data-series] with data-points (JSON), so that what is drawn can be read.
 */
import { el, svg } from '../../scene/dom.js'

const EDGE = { left: 4.4, right: 1, top: 1.9, bottom: 3 } // in the letters' own size

export class Curves {
  constructor({ label, across, up, name, high = 0.36 }) {
    Object.assign(this, { label, across, up, high })
    this.root = el('div', { class: 'plot curves', 'data-chart': name })
    this.series = []
    this.bands = []
  }

  show(series, bands = []) {
    Object.assign(this, { series, bands })
    this.draw()
  }

  draw() {
    const width = this.root.clientWidth
    const all = this.series.flatMap(({ points }) => points)
    if (!width) return
    const size = 0.82 * parseFloat(getComputedStyle(this.root).fontSize)
    this.edge = Object.fromEntries(Object.entries(EDGE).map(([side, letters]) => [side, letters * size]))
    const height = Math.max(190, Math.min(27 * size, width * this.high))
    const far = nice(all.length ? Math.max(1e-9, ...all.map(([x]) => x)) : 1000)
    // A band that lies far above everything measured would flatten the curve: it is left out of the scale.
    const tall = all.length ? Math.max(1e-9, ...all.map(([, y]) => y)) : Infinity
    const seen = this.bands.map(({ to }) => to).filter((to) => to <= 2.5 * tall)
    const top = nice(Math.max(...(all.length ? [tall] : []), ...seen, 1e-9))
    const bottom = height - this.edge.bottom
    const x = (value) => this.edge.left + (value / far.most) * (width - this.edge.left - this.edge.right)
    const y = (value) => bottom - (value / top.most) * (bottom - this.edge.top)
    const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': this.label })
    for (const band of this.bands) picture.append(...this.band(band, y, top.most, width))
    for (let tick = 0; tick <= far.most * 1.0001; tick += far.step) {
      picture.append(svg('text', { class: 'tick', x: x(tick), y: bottom + 1.3 * size, 'text-anchor': 'middle' }, told(tick, far.step)))
    }
    for (let tick = 0; tick <= top.most * 1.0001; tick += top.step) {
      picture.append(svg('line', { class: 'grid', x1: this.edge.left, x2: width - this.edge.right, y1: y(tick), y2: y(tick) }),
        svg('text', { class: 'tick', x: this.edge.left - 6, y: y(tick) + 4, 'text-anchor': 'end' }, told(tick, top.step)))
    }
    picture.append(
      svg('text', { class: 'axis', x: (this.edge.left + width) / 2, y: height - 0.4 * size, 'text-anchor': 'middle' }, this.across),
      svg('text', { class: 'axis', x: 4, y: size, 'text-anchor': 'start' }, this.up))
    for (const one of this.series) picture.append(this.line(one, x, y))
    picture.append(...this.names(x, y, bottom - 4, 1.25 * size))
    this.root.replaceChildren(picture)
  }

  band({ label, from, to, name }, y, most, width) {
    if (from >= most) return []
    const [high, low] = [y(Math.min(to, most)), y(from)]
    return [svg('rect', { class: `band ${name}`, x: this.edge.left, width: width - this.edge.left - this.edge.right, y: high, height: low - high, 'data-band': name, 'data-from': from, 'data-to': to }),
      svg('text', { class: 'band-name', x: width - this.edge.right - 4, y: Math.min(low - 4, high + 13), 'text-anchor': 'end' }, label)]
  }

  line({ name, label, mark, points, line = true, dots = true }, x, y) {
    const places = points.map(([across, up]) => [x(across), y(up)])
    const group = svg('g', { class: `series ${mark}`, 'data-series': name, 'data-points': JSON.stringify(points) })
    if (line && places.length > 1) group.append(svg('polyline', { points: places.map((place) => place.join()).join(' ') }))
    if (dots) group.append(...places.map(([cx, cy]) => svg('circle', { cx, cy, r: 3.5 })))
    return group
  }

  /** Each series' name at its last point, from top to bottom, `apart` at least, so that two that end alike can be read. */
  names(x, y, lowest, apart) {
    const ends = this.series.filter(({ label, points }) => label && points.length)
      .map(({ label, mark, points }) => ({ label, mark, across: x(points.at(-1)[0]), up: Math.max(this.edge.top + 4, y(points.at(-1)[1]) - 8) }))
      .sort((one, other) => one.up - other.up)
    ends.forEach((one, i) => { if (i) one.up = Math.max(one.up, ends[i - 1].up + apart) })
    ends.toReversed().forEach((one, i, from) => { one.up = Math.min(one.up, i ? from[i - 1].up - apart : lowest) })
    return ends.map(({ label, mark, across, up }) => {
      const left = across > x(0) + 0.6 * (this.root.clientWidth - this.edge.left)
      return svg('g', { class: `series ${mark}` }, svg('text', { x: across + (left ? -8 : 8), y: up, 'text-anchor': left ? 'end' : 'start' }, label))
    })
  }
}

/** The least round number not below a value, and a step that divides it into four or five. */
function nice(value) {
  const size = 10 ** Math.floor(Math.log10(value))
  const [most, parts] = [[1, 5], [1.5, 3], [2, 4], [2.5, 5], [3, 3], [4, 4], [5, 5], [6, 3], [8, 4], [10, 5]].find(([step]) => step * size >= value * 0.9999)
  return { most: most * size, step: (most * size) / parts }
}

const told = (value, step) => value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) + (step < 1 && !Number.isInteger(+(step * 10 ** -Math.floor(Math.log10(step))).toFixed(6)) ? 1 : 0))
