/** The wait for the first word against the paper's length: this paper's beginnings are really read, one after another. */
import { button, el, fill, setText, svg, tag } from '../../scene/dom.js'
import { time } from '../../scene/draw/headline.js'
import { number } from '../../scene/text.js'
import { curveOf } from './curve.js'

const LONGEST = 4096 // as the engine times at most
const PATIENCE = 1500 // milliseconds until a length is asked for again that others' runs held up
const HELD_UP = ['others_at_work', 'too_many_jobs', 'engine_busy']
const BUSY = 0.2 // cores kept by other programs from which on it is said
const [WIDE, HIGH, LEFT, RIGHT, TOP, BOTTOM] = [720, 300, 64, 24, 18, 40]

export class Lengths {
  /** `desk`: {words, scene (the scene's words), api, prompt, ttft, kind, onLong() or null}. */
  constructor(desk) {
    this.desk = desk
    this.points = []
    const { words, prompt } = desk
    this.lengths = lengthsOf(prompt)
    this.go = button(words.length.go, () => this.measure(), { class: 'pill main', 'data-do': 'length' })
    this.halt = button(words.length.stop, () => { this.stopped = true }, { class: 'pill halt', 'data-do': 'length-stop', hidden: true })
    this.long = button(words.length.long, () => desk.onLong(), { class: 'pill', 'data-do': 'length-long', hidden: !desk.onLong })
    this.progress = el('progress', { max: this.lengths.length, value: 0, hidden: true })
    this.told = el('p', { class: 'told', role: 'status', 'data-length': '0' })
    this.plot = el('div', { class: 'plot' })
    this.curve = el('p', { class: 'caption' })
    this.own = el('p', { class: 'caption', hidden: true }, fill(words.length.own, { time: time(desk.ttft ?? 0) }))
    this.busy = el('p', { class: 'caption trouble', hidden: true })
    this.table = el('table', { hidden: true })
    this.root = el('div', {},
      el('p', {}, fill(words.length.lead, { list: this.lengths.map((n) => number(n)).join(', ') })),
      el('div', { class: 'row' }, this.go, this.halt, this.long), this.progress, this.told, this.plot, this.own, this.curve, this.busy,
      el('div', { class: 'wide' }, this.table))
  }

  close() {
    this.closed = this.stopped = true
    clearTimeout(this.timer)
  }

  async measure() {
    const { words } = this.desk
    this.points = []
    this.stopped = false
    this.running(true)
    try {
      for (const tokens of this.lengths) {
        if (this.stopped) break
        setText(this.told, fill(words.length.progress, { n: number(tokens), k: this.points.length + 1, all: this.lengths.length }))
        const point = await this.one(tokens)
        if (!point || this.closed) break
        this.points.push(point)
        this.draw()
      }
      if (!this.closed) this.verdict()
    } catch ({ message }) {
      setText(this.told, message || words.trouble)
    }
    this.running(false)
  }

  /** One length; while others' runs go first it is asked for again. Nothing when it was stopped meanwhile. */
  async one(tokens) {
    while (!this.stopped) {
      try {
        return await this.desk.api.json(`/beginning?tokens=${tokens}`)
      } catch (problem) {
        if (!HELD_UP.includes(problem.code)) throw problem
        setText(this.told, this.desk.words.length.waiting)
        await new Promise((resolve) => { this.timer = setTimeout(resolve, PATIENCE) })
      }
    }
    return null
  }

  running(on) {
    this.go.disabled = on
    this.halt.hidden = this.progress.hidden = !on
  }

  verdict() {
    const { words } = this.desk
    const [first, last] = [this.points[0], this.points.at(-1)]
    if (this.points.length < 2) return setText(this.told, words.length.few)
    setText(this.told, fill(words.length.told, {
      least: number(first.tokens), most: number(last.tokens), tokens: times(last.tokens / first.tokens), factor: times(last.middle / first.middle),
    }))
  }

  draw() {
    const { words, scene } = this.desk
    const { points } = this
    this.progress.value = points.length
    this.told.dataset.length = points.length
    this.own.hidden = !this.desk.ttft
    const busy = Math.max(...points.map((point) => point.busy ?? 0))
    this.busy.hidden = busy < BUSY
    setText(this.busy, fill(words.length.busy, { n: number(busy, 1) }))
    const curve = curveOf(points)
    this.plot.replaceChildren(this.picture(curve))
    setText(this.curve, curve ? fill(words.length.curve, {
      fixed: time(curve.fixed), rate: number(1e-9 / curve.slope, 1), mean: percents(curve.mean), worst: percents(curve.worst),
    }) : words.length.no_curve)
    Object.assign(this.curve.dataset, curve ? { fixed: curve.fixed, slope: curve.slope } : {})
    const head = ['tokens', 'measured', 'readings', 'predicted', 'difference'].map((name) => el('th', { scope: 'col' }, words.length[name]))
    this.table.replaceChildren(el('thead', {}, el('tr', {}, ...head)), el('tbody', {}, ...points.map((point) => {
      const predicted = curve?.at(point.flops)
      return el('tr', { 'data-tokens': point.tokens, 'data-middle': point.middle, 'data-flops': point.flops ?? '', 'data-curve': predicted ?? '' },
        el('th', { scope: 'row' }, number(point.tokens)), el('td', {}, time(point.middle), ' ', tag(scene, 'measured', true)),
        el('td', {}, String(point.seconds.length)), el('td', {}, ...(curve ? [time(predicted), ' ', tag(scene, 'computed', true)] : ['–'])),
        el('td', {}, curve ? signed(point.middle / predicted - 1) : '–'))
    })))
    this.table.hidden = false
  }

  /** Both axes by doublings: a wait in proportion to the length is a straight line at 45 degrees. */
  picture(curve) {
    const { words, prompt, ttft } = this.desk
    const line = curve?.line ?? []
    const waits = [...this.points.flatMap((point) => point.seconds), ...line.map(([, s]) => s), ...(ttft ? [ttft] : [])]
    const [low, high] = [2 ** Math.floor(Math.log2(Math.min(...waits)) - 0.1), 2 ** Math.ceil(Math.log2(Math.max(...waits)) + 0.1)]
    const [least, most] = [this.lengths[0], this.lengths.at(-1)]
    const x = (n) => LEFT + (Math.log2(n / least) / Math.max(1, Math.log2(most / least))) * (WIDE - LEFT - RIGHT)
    const y = (s) => HIGH - BOTTOM - (Math.log2(s / low) / Math.max(1, Math.log2(high / low))) * (HIGH - TOP - BOTTOM)
    const text = (content, attributes) => svg('text', { fill: 'var(--pencil)', 'font-size': 13, ...attributes }, content)
    const lines = []
    for (let s = low; s <= high; s *= 2) {
      lines.push(svg('line', { x1: LEFT, x2: WIDE - RIGHT, y1: y(s), y2: y(s), stroke: 'var(--rule)' }),
        text(time(s), { x: LEFT - 8, y: y(s) + 4, 'text-anchor': 'end' }))
    }
    const marks = this.lengths.map((n) => text(number(n), { x: x(n), y: HIGH - BOTTOM + 18, 'text-anchor': 'middle' }))
    const path = curve && svg('path', { d: line.map(([n, s], i) => `${i ? 'L' : 'M'}${x(n)} ${y(s)}`).join(' '), fill: 'none', stroke: 'var(--decode)', 'stroke-width': 2, 'stroke-dasharray': '5 4' })
    const points = this.points.map(({ tokens, middle, seconds }) => svg('g', {},
      svg('line', { x1: x(tokens), x2: x(tokens), y1: y(Math.min(...seconds)), y2: y(Math.max(...seconds)), stroke: 'var(--prefill)', 'stroke-width': 2 }),
      svg('circle', { cx: x(tokens), cy: y(middle), r: 5, fill: 'var(--prefill)' }),
      text(time(middle), { x: x(tokens) + (tokens === most ? -9 : 9), y: y(middle) + (tokens === most ? -6 : 16), 'text-anchor': tokens === most ? 'end' : 'start', fill: 'var(--prefill)', 'font-weight': 700 })))
    const own = ttft && prompt <= most ? [svg('rect', { x: x(prompt) - 5, y: y(ttft) - 5, width: 10, height: 10, fill: 'none', stroke: 'var(--ink)', 'stroke-width': 2 })] : []
    return svg('svg', { viewBox: `0 0 ${WIDE} ${HIGH}`, role: 'img', 'aria-label': words.length.label }, ...lines, ...marks,
      text(words.length.axis, { x: WIDE - RIGHT, y: HIGH - 4, 'text-anchor': 'end' }), ...(path ? [path] : []), ...points, ...own)
  }
}

/** 32, 64, 128 … and the whole; a short paper's start lower. */
export function lengthsOf(prompt) {
  const most = Math.min(prompt, LONGEST)
  const found = []
  for (let n = most < 256 ? 8 : 32; n < most / 1.1; n *= 2) found.push(n)
  return [...found, most]
}

const times = (factor) => number(factor, factor < 10 ? 1 : 0)
const percents = (share) => `${number(100 * share, 1)}%`
const signed = (share) => `${share < 0 ? '−' : '+'}${percents(Math.abs(share))}`
