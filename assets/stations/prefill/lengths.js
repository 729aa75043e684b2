/** The wait for the first word against the paper's length: this paper's beginnings are really read, one after another. */
import { button, el, fill, setText, tag } from '../../scene/dom.js'
import { time } from '../../scene/draw/headline.js'
import { number } from '../../scene/text.js'
import { Chart } from '../shared/chart.js'

const LONGEST = 4096 // as the engine times at most
const PATIENCE = 1500 // milliseconds until a length is asked for again that others' runs held up
const HELD_UP = ['others_at_work', 'too_many_jobs', 'engine_busy']
const BUSY = 0.2 // cores kept by other programs from which on it is said

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
    this.chart = new Chart({ name: 'lengths', base: desk.base, lang: desk.lang, words: words.chart, scene: desk.scene })
    this.chart.root.hidden = true // until there is a point
    this.curve = el('p', { class: 'caption' })
    this.own = el('p', { class: 'caption', hidden: !desk.ttft }, fill(words.length.own, { time: time(desk.ttft ?? 0) }))
    this.busy = el('p', { class: 'caption trouble', hidden: true })
    this.table = el('table', { hidden: true })
    this.root = el('div', {},
      el('p', {}, fill(words.length.lead, { list: this.lengths.map((n) => number(n)).join(', ') })),
      el('div', { class: 'row' }, this.go, this.halt, this.long), this.progress, this.told, this.chart.root, this.own, this.curve, this.busy,
      el('div', { class: 'wide' }, this.table))
  }

  close() {
    this.closed = this.stopped = true
    clearTimeout(this.timer)
    this.chart.close()
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

  /** The points on the chart, and what follows from them: the curve through them, and how far off it each is. */
  async draw() {
    const { points } = this
    this.progress.value = points.length
    this.told.dataset.length = points.length
    const busy = Math.max(...points.map((point) => point.busy ?? 0))
    this.busy.hidden = busy < BUSY
    setText(this.busy, fill(this.desk.words.length.busy, { n: number(busy, 1) }))
    const rows = points.map(({ tokens, middle, seconds, flops }) => ({ tokens, middle, low: Math.min(...seconds), high: Math.max(...seconds), flops: flops ?? null }))
    const own = this.own.hidden ? [] : [{ kind: 'own', tokens: this.desk.prompt, middle: this.desk.ttft }]
    this.chart.root.hidden = false
    this.chart.show({}, [...rows, ...own])
    const frame = await this.chart.rows({}, rows).catch(() => null)
    if (frame && points === this.points && points.length === rows.length && !this.closed) this.tell(frame)
  }

  tell({ rows, about: { fit } }) {
    const { words, scene } = this.desk
    setText(this.curve, fit ? fill(words.length.curve, {
      fixed: time(fit.fixed), rate: number(1e-9 / fit.slope, 1), mean: percents(fit.mean), worst: percents(fit.worst),
    }) : words.length.no_curve)
    const head = ['tokens', 'measured', 'readings', 'predicted', 'difference'].map((name) => el('th', { scope: 'col' }, words.length[name]))
    this.table.replaceChildren(el('thead', {}, el('tr', {}, ...head)), el('tbody', {}, ...this.points.map((point) => {
      const { fitted, off } = rows.find(({ kind, tokens }) => kind === 'point' && tokens === point.tokens)
      return el('tr', { 'data-tokens': point.tokens, 'data-middle': point.middle, 'data-flops': point.flops ?? '', 'data-curve': fitted ?? '' },
        el('th', { scope: 'row' }, number(point.tokens)), el('td', {}, time(point.middle), ' ', tag(scene, 'measured', true)),
        el('td', {}, String(point.seconds.length)), el('td', {}, ...(fit ? [time(fitted), ' ', tag(scene, 'computed', true)] : ['–'])),
        el('td', {}, fit ? signed(off) : '–'))
    })))
    this.table.hidden = false
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
