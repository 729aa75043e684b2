/** The way of a token: four stations, and the ways out of the loop. */
import { svg } from '../dom.js'

const NAMES = ['tokenise', 'prefill', 'decode', 'detokenise']
const INKS = ['var(--special)', 'var(--prefill)', 'var(--decode)', 'var(--ink)']
const ABNORMAL = ['stopped', 'timeout', 'out_of_memory', 'error']

export class Rail {
  constructor(scene) {
    this.scene = scene
    this.shown = ''
  }

  /** Builds the drawing for the present width. */
  resize() {
    const { words, parts, u, small } = this.scene
    const width = Math.max(300, (parts.rail.clientWidth / u) * 16)
    const y = small ? 14 : 15
    const xs = small
      ? [30, 0.36, 0.63, 0.89].map((x) => (x < 1 ? x * width : x))
      : [52, 0.28, 0.55, 0.94].map((x) => (x < 1 ? x * width : x))
    this.stations = NAMES.map((name, i) => this.station(name, xs[i], y, INKS[i]))
    this.done = svg('line', { x1: xs[0], x2: xs[0], y1: y, y2: y, stroke: 'var(--ink)', 'stroke-width': 3 })
    Object.assign(this, { xs, y })
    this.way = this.exit(xs, y)
    this.normal = svg(
      'text',
      { x: xs[3] - 20, y: y - 5, 'font-size': 12, 'text-anchor': 'end', fill: 'var(--pencil)' },
      small ? '' : words.rail.normal,
    )
    parts.rail.replaceChildren(
      svg(
        'svg',
        {
          viewBox: `0 0 ${width} ${small ? 66 : 60}`,
          role: 'img',
          'aria-label': NAMES.map((name) => words.rail[name]).join(' → '),
        },
        svg('line', { x1: xs[0], x2: xs[3], y1: y, y2: y, stroke: 'var(--ghost)', 'stroke-width': 3 }),
        this.done,
        this.normal,
        this.way.path,
        this.way.label,
        ...this.stations.map((station) => station.group),
      ),
    )
    this.shown = ''
  }

  station(name, x, y, ink) {
    const { words, small } = this.scene
    const dot = svg('circle', { cx: x, cy: y, r: 8, fill: 'var(--desk)', stroke: ink, 'stroke-width': 3 })
    const title = svg(
      'text',
      {
        x,
        y: y + (small ? 26 : 27),
        'font-size': small ? 12.5 : 15,
        'text-anchor': 'middle',
        'font-weight': 700,
        fill: 'var(--ink)',
      },
      words.rail[name],
    )
    const group = svg('g', {}, ...(name === 'decode' ? this.loop(x, y) : []), dot, title)
    if (!small)
      group.append(
        svg(
          'text',
          { x, y: y + 43, 'font-size': 12.5, 'text-anchor': 'middle', fill: 'var(--pencil)' },
          words.rail[`${name}_sub`],
        ),
      )
    return { group, dot, title, ink }
  }

  /** The arrow that says: again. */
  loop(x, y) {
    const radius = 14
    const [from, to] = [-0.75, -2.3]
    const at = (angle) => `${x + radius * Math.cos(angle)} ${y + radius * Math.sin(angle)}`
    return [
      svg('path', {
        d: `M${at(from)} A${radius} ${radius} 0 1 1 ${at(to)}`,
        fill: 'none',
        stroke: 'var(--decode)',
        'stroke-width': 2.3,
        'stroke-linecap': 'round',
      }),
      svg('path', {
        d: 'M-5 -5 L6 0 L-5 5 Z',
        transform: `translate(${x + radius * Math.cos(to) + 2} ${y + radius * Math.sin(to) - 1}) rotate(-42)`,
        fill: 'var(--decode)',
      }),
    ]
  }

  exit([, , x], y) {
    const { words, small } = this.scene
    const d = small
      ? `M${x + 9} ${y + 12} C${x + 50} ${y + 18} ${x + 50} ${y + 40} ${x + 24} ${y + 40}`
      : `M${x + 16} ${y + 2} C${x + 46} ${y + 4} ${x + 46} ${y + 23} ${x + 78} ${y + 23}`
    const path = svg('path', {
      d,
      fill: 'none',
      stroke: 'var(--stop)',
      'stroke-width': 1.6,
      'stroke-dasharray': '4 3.5',
    })
    const label = svg(
      'text',
      {
        x: small ? x + 18 : x + 84,
        y: y + (small ? 44 : 27),
        'font-size': small ? 11.5 : 13,
        fill: 'var(--stop)',
        'text-anchor': small ? 'end' : 'start',
      },
      `✕ ${words.rail.abnormal}`,
    )
    return { path, label }
  }

  draw(moment) {
    const { words } = this.scene
    const { phase, state, ink } = moment
    const on = { idle: -1, queued: -1, tokenise: 0, prefill: 1, first: 1, decode: 2, end: 3 }[phase]
    const broken = phase === 'end' && ABNORMAL.includes(state.reason)
    const reached = broken ? (state.chosen ? 2 : state.prompt ? 1 : 0) : on
    const writing = phase === 'decode' && ink < 1
    const key = [on, broken, writing, state.reason].join()
    if (key === this.shown) return
    this.shown = key
    this.stations.forEach(({ group, dot, title, ink: colour }, i) => {
      const lit = (i === on && !broken) || (i === 3 && writing)
      dot.setAttribute('fill', lit ? colour : i <= reached ? 'var(--ghost)' : 'var(--desk)')
      dot.setAttribute('r', lit && i !== 2 ? 10 : 8)
      title.setAttribute('fill', lit ? colour : 'var(--ink)')
      group.style.opacity = lit || i <= reached ? 1 : 0.72
    })
    this.done.setAttribute('x2', this.xs[Math.max(0, reached)])
    this.way.path.setAttribute('stroke-width', broken ? 3.2 : 1.6)
    this.way.path.setAttribute('stroke-dasharray', broken ? 'none' : '4 3.5')
    this.way.label.setAttribute('font-weight', broken ? 700 : 400)
    this.way.label.textContent = `✕ ${broken ? words.rail[state.reason] : words.rail.abnormal}`
    if (!this.scene.small)
      this.normal.textContent = phase === 'end' && !broken ? words.rail[state.reason] : words.rail.normal
  }
}
