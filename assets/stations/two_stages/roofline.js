/**
 * The roofline (Williams, Waterman, Patterson 2009): arithmetic per byte to the right, arithmetic per second upwards, both
 * logarithmic. Below the roof is what this machine can do; a point is a pass that was really timed.
 *
 * [data-point] on each point holds its name, data-x and data-y its place (FLOP/byte, FLOP/s); the same stands in the
 * sentence below, which follows the pointer and the keyboard.
 */
import { el, fill, setText, svg } from '../../scene/dom.js'
import { joined, roof, share, si, verdict } from './stages_data.js'

const EDGE = { left: 4.8, right: 1.2, top: 1, bottom: 3.2 } // in the letters' own size

export class Roofline {
  constructor(words) {
    this.words = words
    this.frame = el('div', { class: 'plot' })
    this.told = el('p', { class: 'told', 'aria-live': 'polite', 'data-roofline': true })
    this.root = el('div', {}, this.frame, this.told)
    this.points = []
  }

  /** `points`: [{name, label, long, place, mark, intensity, rate, speed, more?, evidence?}]; `peaks` or null; `guess`: a computed one, or null. */
  show(points, peaks, guess) {
    Object.assign(this, { points, peaks, guess })
    this.draw()
  }

  draw() {
    const width = this.frame.clientWidth
    if (!width || !this.points.length) return
    const size = 0.82 * parseFloat(getComputedStyle(this.frame).fontSize)
    this.size = size
    this.edge = Object.fromEntries(Object.entries(EDGE).map(([side, letters]) => [side, letters * size]))
    const height = Math.max(300, Math.min(37 * size, width * 0.52))
    this.axes(width, height)
    const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'group', 'aria-label': this.words.roofline.label, 'data-drawn': this.points.length })
    picture.append(...this.grid(width, height))
    if (this.peaks) picture.append(...this.roofs())
    if (this.guess && this.peaks) picture.append(this.ghost())
    const batches = this.points.filter((point) => point.mark === 'batch')
    if (batches.length > 1) {
      picture.append(svg('polyline', { class: 'path', points: batches.map((point) => `${this.x(point.intensity)},${this.y(point.rate)}`).join(' ') }))
    }
    // What comes last lies on top: the run's own two points, which a batch of one all but covers.
    picture.append(...[...batches, ...this.points.filter((point) => point.mark !== 'batch')].map((point) => this.point(point)))
    this.frame.replaceChildren(picture)
    const chosen = this.points.find((point) => point.name === this.chosen) ?? this.points[0]
    this.tell(chosen)
  }

  /** Ranges in whole decades that hold all points and the ridge. */
  axes(width, height) {
    const { peaks, points, guess } = this
    const ridge = peaks ? [peaks.compute.rate / peaks.bandwidth.rate] : []
    const across = [...points.map((point) => point.intensity), ...ridge, ...(guess ? [guess.intensity] : [])]
    const up = [...points.map((point) => point.rate), ...(peaks ? [peaks.compute.rate] : [])]
    const decades = (values, room) => [Math.floor(Math.log10(Math.min(...values) / room)), Math.ceil(Math.log10(Math.max(...values) * room))]
    this.across = decades(across, 1.5)
    this.up = decades(up, 1.3)
    const scale = ([from, to], low, high) => (value) => low + ((Math.log10(value) - from) / (to - from)) * (high - low)
    this.x = scale(this.across, this.edge.left, width - this.edge.right)
    this.y = scale(this.up, height - this.edge.bottom, this.edge.top)
    this.box = { width, height }
  }

  grid(width, height) {
    const lines = []
    const bottom = height - this.edge.bottom
    for (let power = this.across[0]; power <= this.across[1]; power++) {
      const x = this.x(10 ** power)
      lines.push(svg('line', { class: 'grid', x1: x, x2: x, y1: this.edge.top, y2: bottom }),
        svg('text', { class: 'tick', x, y: bottom + 1.3 * this.size, 'text-anchor': 'middle' }, `${10 ** power}`))
    }
    for (let power = this.up[0]; power <= this.up[1]; power++) {
      const y = this.y(10 ** power)
      lines.push(svg('line', { class: 'grid', x1: this.edge.left, x2: width - this.edge.right, y1: y, y2: y }),
        svg('text', { class: 'tick', x: this.edge.left - 6, y: y + 4, 'text-anchor': 'end' }, si(10 ** power, '').replace('.00', '').replace('.0', '')))
    }
    const { axis_x: across, axis_y: up } = this.words.roofline
    lines.push(svg('text', { class: 'axis', x: (this.edge.left + width - this.edge.right) / 2, y: height - 0.5 * this.size, 'text-anchor': 'middle' }, across),
      svg('text', { class: 'axis', x: 0, y: 0, 'text-anchor': 'middle', transform: `translate(${this.size} ${(this.edge.top + bottom) / 2}) rotate(-90)` }, up))
    return lines
  }

  roofs() {
    const { peaks, words } = this
    const ridge = peaks.compute.rate / peaks.bandwidth.rate
    const low = Math.max(10 ** this.across[0], 10 ** this.up[0] / peaks.bandwidth.rate)
    const [x0, x1, x2] = [low, ridge, 10 ** this.across[1]].map(this.x)
    const [y0, y1] = [roof(peaks, low), peaks.compute.rate].map(this.y)
    const bottom = this.box.height - this.edge.bottom
    const slope = (Math.atan2(y1 - y0, x1 - x0) * 180) / Math.PI
    const middle = [(x0 + x1) / 2, (y0 + y1) / 2]
    return [
      svg('path', { class: 'under', d: `M${x0} ${y0}L${x1} ${y1}H${x2}V${bottom}H${x0}Z` }),
      svg('line', { class: 'ridge', x1, x2: x1, y1, y2: bottom }),
      svg('path', { class: 'roof', d: `M${x0} ${y0}L${x1} ${y1}H${x2}`, 'data-compute': peaks.compute.rate, 'data-bandwidth': peaks.bandwidth.rate }),
      svg('text', { class: 'name', x: 0, y: -7, 'text-anchor': 'middle', transform: `translate(${middle}) rotate(${slope})` }, fill(words.roofline.bandwidth, { rate: si(peaks.bandwidth.rate, 'B/s') })),
      svg('text', { class: 'name', x: x2 - 4, y: y1 - 7, 'text-anchor': 'end' }, fill(words.roofline.compute, { rate: si(peaks.compute.rate, 'FLOP/s') })),
    ]
  }

  /** Where prefill of another length may stand at best: on the roof, computed. */
  ghost() {
    const [x, y] = [this.x(this.guess.intensity), this.y(roof(this.peaks, this.guess.intensity))]
    return svg('g', { class: 'ghost', 'data-guess': this.guess.tokens, 'data-x': this.guess.intensity, 'data-y': roof(this.peaks, this.guess.intensity) },
      svg('path', { d: `M${x} ${y - 8}l8 8l-8 8l-8 -8Z` }))
  }

  point(point) {
    const [x, y] = [this.x(point.intensity), this.y(point.rate)]
    const radius = point.mark === 'batch' ? 5 : 8
    const { dx, dy, anchor } = point.place
    const choose = () => this.tell(point)
    return svg('g', {
      class: `point ${point.mark}`, tabindex: 0, role: 'img', 'aria-label': this.sentence(point), 'data-point': point.name,
      'data-x': point.intensity, 'data-y': point.rate, onpointerenter: choose, onfocus: choose, onclick: choose,
    },
      svg('circle', { class: 'reach', cx: x, cy: y, r: 14 }), svg('circle', { cx: x, cy: y, r: radius }),
      svg('text', { x: x + dx, y: y + dy, 'text-anchor': anchor }, point.label))
  }

  sentence(point) {
    const { words, peaks } = this
    const values = { name: point.long, intensity: point.intensity.toPrecision(3), rate: si(point.rate, 'FLOP/s'), speed: si(point.speed, 'B/s') }
    const said = fill(words.roofline.point, values)
    if (!peaks) return said
    const found = verdict(peaks, point)
    const kind = found.share > 1.03 ? 'over' : `${found.bound ? 'held' : 'below'}_${found.roof}`
    const shares = { share: share(found.share), compute: share(point.rate / peaks.compute.rate), bandwidth: share(point.speed / peaks.bandwidth.rate) }
    return joined([said, fill(words.roofline[kind], shares), found.bound ? '' : point.evidence, point.more])
  }

  tell(point) {
    this.chosen = point.name
    setText(this.told, this.sentence(point))
    Object.assign(this.told.dataset, { name: point.name, x: point.intensity, y: point.rate })
    for (const group of this.frame.querySelectorAll('.point')) group.toggleAttribute('data-chosen', group.dataset.point === point.name)
  }
}
