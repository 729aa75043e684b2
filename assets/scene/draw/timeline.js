/** The run to scale: waiting, tokenising, reading, one tick per word; TTFT and TPOT above, the model's clock below. */
import { fill, tag } from '../dom.js'
import { duration, visible } from '../text.js'
import { font } from './marks.js'
import { decimals, niceStep } from './ruler.js'
import { time } from './headline.js'
import { axisOf } from './axis.js'

export class Timeline {
  constructor(scene) {
    this.scene = scene
    this.reset()
  }

  reset() {
    this.key = ''
  }

  measure() {
    const { parts, trace, player, u, small, layout } = this.scene
    const end = player.axis
    const key = [layout, end, trace.started ? trace.started.at : trace.waits.length].join()
    if (key === this.key) return
    this.key = key
    const { clientWidth: width, clientHeight: height } = parts.time
    const over = 0.6 * u
    parts.timeline.width = Math.round((width + 2 * over) * devicePixelRatio)
    parts.timeline.height = Math.round(height * devicePixelRatio)
    this.context = parts.timeline.getContext('2d')
    this.context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, over * devicePixelRatio, 0)
    const top = 1.55 * u
    const bar = 1.2 * u
    this.g = { u, small, width, height, end, top, bar, axis: top + bar + 1.22 * u, ...axisOf(trace, width, end) }
  }

  timeAt(x) {
    return this.g ? this.g.t(x) : 0
  }

  draw(moment) {
    this.measure()
    const { context: c, g } = this
    const { trace, palette } = this.scene
    c.clearRect(-g.u, 0, g.width + 2 * g.u, g.height)
    if (g.begun > 0 && trace.waits.length) this.drawWait(moment)
    if (trace.started) this.block(g.begun, trace.started.at, moment.t, palette.special)
    for (const pass of trace.passes) this.drawPass(pass, moment.t)
    this.drawSteps(moment)
    this.drawAxis()
    this.drawBrackets(moment)
    this.drawHead(moment)
  }

  block(a, b, t, colour) {
    const { context: c, g } = this
    const { palette } = this.scene
    const x = g.x(a)
    const width = Math.max(1.5, g.x(Math.min(b, g.end)) - x - (g.x(b) - x > 4 ? 1 : 0))
    c.globalAlpha = 1
    c.fillStyle = palette.paper
    c.fillRect(x, g.top, width, g.bar)
    if (width > 3) {
      c.globalAlpha = 0.35
      c.strokeStyle = colour
      c.lineWidth = 1
      c.strokeRect(x + 0.5, g.top + 0.5, width - 1, g.bar - 1)
    }
    c.globalAlpha = 1
    c.fillStyle = colour
    if (t > a) c.fillRect(x, g.top, t >= b ? width : Math.min(width, g.x(t) - x), g.bar)
  }

  drawWait({ t }) {
    const { context: c, g } = this
    const { palette, words } = this.scene
    const end = g.x(Math.min(g.begun, t))
    c.strokeStyle = palette.faint
    c.lineWidth = 1.2
    c.setLineDash([2, 4])
    c.strokeRect(0.5, g.top + 0.5, g.x(g.begun) - 1, g.bar - 1)
    c.beginPath()
    c.moveTo(0, g.top + g.bar / 2)
    c.lineTo(end, g.top + g.bar / 2)
    c.stroke()
    c.setLineDash([])
    const label = g.folded ? words.time.not_to_scale : words.time.queue
    font(c, g, 0.84)
    if (c.measureText(label).width < g.x(g.begun) - 0.4 * g.u)
      this.label(label, 0.2 * g.u, g.top + g.bar + g.u, palette.pencil)
    if (!g.folded) return
    c.strokeStyle = palette.ink
    for (const shift of [-4, 2]) {
      c.beginPath()
      c.moveTo(g.x(g.begun) / 2 + shift, g.top - 3)
      c.lineTo(g.x(g.begun) / 2 + shift + 6, g.top + g.bar + 3)
      c.stroke()
    }
  }

  drawPass(pass, t) {
    const { context: c, g } = this
    const { palette, words } = this.scene
    const b = Math.min(pass.b, Math.max(g.end, t))
    this.block(pass.a, pass.b < Infinity ? pass.b : Math.max(t, this.scene.trace.end), t, palette.prefill)
    const pitch = (g.x(b) - g.x(pass.a)) / Math.max(1, pass.layers.length)
    c.strokeStyle = palette.desk
    c.lineWidth = pitch > 5 ? 0.8 : 0.4
    if (pitch > 2.5) {
      for (const layer of pass.layers.slice(1)) {
        c.beginPath()
        c.moveTo(g.x(layer.a), g.top)
        c.lineTo(g.x(layer.a), g.top + g.bar)
        c.stroke()
      }
    }
    const rest = this.scene.trace.rest
    const name = pass.taken ? words.time.taken : words.time.prefill
    if (!g.small && (rest ? !pass.taken && pass.start === this.scene.trace.reused.stop : pass.start === 0)) this.label(name, g.x(pass.a), g.top + g.bar + g.u, palette.prefill)
  }

  drawSteps({ t, words }) {
    const { context: c, g } = this
    const { trace, palette } = this.scene
    trace.steps.forEach((step, i) => this.block(step.a, trace.words[i + 1]?.at ?? step.b, t, palette.decode))
    c.fillStyle = palette.ink
    let free = g.small ? 0 : g.x(trace.passes[0]?.a ?? 0) + 4.4 * g.u
    for (const word of trace.words.slice(0, words)) {
      const step = trace.steps[word.index - 1]
      const text = word.token.special ? '■' : visible(word.token.text).slice(0, 16)
      font(
        c,
        g,
        word.token.special ? 0.8 : g.small ? 0.84 : 1.04,
        word.token.special ? '400' : 'italic 400',
        '"Exam Serif", "Noto Serif", serif',
      )
      const width = c.measureText(text).width
      const x = step ? (g.x(step.a) + g.x(word.at)) / 2 : g.x(word.at) - width / 2 - 2
      if (x - width / 2 < free || x + width / 2 > g.width) continue
      c.textAlign = 'center'
      c.fillText(text, x, g.top + g.bar + 1.02 * g.u)
      free = x + width / 2 + 4
    }
  }

  label(text, x, y, colour, align = 'left') {
    const { context: c, g } = this
    font(c, g, 0.84)
    c.globalAlpha = 1
    c.textAlign = align
    c.fillStyle = colour
    c.fillText(text, x, y)
  }

  drawAxis() {
    const { context: c, g } = this
    const { palette } = this.scene
    c.globalAlpha = 1
    c.fillStyle = palette.ghost
    c.fillRect(0, g.axis, g.width, 1)
    const from = g.folded ? g.begun : 0
    const step = niceStep((g.end - from) / (g.small ? 5 : 10))
    const scale = g.end < 1 ? 1000 : 1
    const unit = g.end < 1 ? 'ms' : 's'
    const digits = decimals(step * scale)
    let free = -1
    for (let n = Math.ceil(from / step); n * step <= g.end; n++) {
      const x = g.x(n * step)
      const text = `${(n * step * scale).toFixed(digits)}${n === Math.ceil(from / step) ? ` ${unit}` : ''}`
      const width = (text.length * 0.55 + 0.3) * g.u
      c.fillStyle = palette.faint
      c.fillRect(x, g.axis, 1, 0.28 * g.u)
      if ((free >= 0 && x - width / 2 < free) || x + width / 2 > g.width + 2) continue
      this.label(text, x < width / 2 ? 0 : x, g.axis + 0.98 * g.u, palette.pencil, x < width / 2 ? 'left' : 'center')
      free = x + width / 2
    }
  }

  bracket(a, b, colour) {
    const { context: c, g } = this
    c.strokeStyle = colour
    c.lineWidth = 1.8
    c.beginPath()
    c.moveTo(a + 0.5, g.top - 0.1 * g.u)
    c.lineTo(a + 0.5, g.top - 0.36 * g.u)
    c.lineTo(b - 1, g.top - 0.36 * g.u)
    c.lineTo(b - 1, g.top - 0.1 * g.u)
    c.stroke()
  }

  /** TTFT from pressing start to the first word; TPOT over one typical word. Shown once they are known. */
  drawBrackets({ t }) {
    const { g } = this
    const { trace, parts, palette, words, kind, small } = this.scene
    const first = trace.last.ttft
    const known = first !== null && (trace.finished || t >= first)
    parts.ttft.hidden = !known
    if (known) {
      this.bracket(0, g.x(first), palette.prefill)
      this.caption(parts.ttft, `${small ? 'TTFT' : words.time.ttft} ${time(first)}`, kind, () => 0)
    }
    const tpot = trace.last.tpot
    parts.tpot.hidden = tpot === null
    if (tpot === null) return
    const middle = this.typical(tpot)
    const [a, b] = [g.x(trace.words[middle - 1].at), g.x(trace.words[middle].at)]
    this.bracket(a, b, palette.decode)
    const end = parts.ttft.hidden ? 0 : parts.ttft.wide + g.u
    const label = `${small ? 'TPOT' : words.time.tpot} ${time(tpot)}`
    this.caption(parts.tpot, label, kind, (wide) => Math.min(g.width - wide, Math.max(end, (a + b) / 2 - wide / 2)))
  }

  /** The word from the middle of the answer whose time is nearest to the mean. */
  typical(tpot) {
    const { words, last } = this.scene.trace
    const from = last.kept + Math.max(1, Math.floor((words.length - last.kept) * 0.3))
    let best = from
    for (let i = from; i < Math.min(words.length, from + 24); i++) {
      const off = (k) => Math.abs(words[k].at - words[k - 1].at - tpot)
      if (off(i) < off(best)) best = i
    }
    return best
  }

  caption(element, text, kind, place) {
    const key = [text, kind, this.key].join()
    if (element.shown !== key) {
      element.shown = key
      element.replaceChildren(text, tag(this.scene.words, kind, true))
      element.wide = element.offsetWidth
    }
    const left = `${Math.round(place(element.wide))}px`
    if (element.style.left !== left) element.style.left = left
  }

  drawHead({ t }) {
    const { context: c, g } = this
    const { palette, parts, words } = this.scene
    const x = g.x(Math.min(g.end, Math.max(0, t)))
    c.fillStyle = palette.ink
    c.fillRect(x - 1.1, g.top - 0.5 * g.u, 2.2, g.axis + 0.2 * g.u - g.top + 0.5 * g.u)
    c.beginPath()
    c.arc(x, g.axis + 0.1 * g.u, 0.4 * g.u, 0, 7)
    c.fill()
    parts.time.setAttribute('aria-valuemax', g.end.toFixed(4))
    parts.time.setAttribute('aria-valuenow', t.toFixed(4))
    parts.time.setAttribute(
      'aria-valuetext',
      fill(words.time.at, { time: duration(t).join(' '), what: parts.headline.textContent }),
    )
  }
}
