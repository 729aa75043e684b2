/**
 * A chart of the service's: `/api/figures/NAME` gives a Plotly figure, this draws it where it is put.
 *
 * `new Chart({name, base, lang, words, scene})`; `words` are those of `stations.chart`. `show(query, rows)` asks for the
 * figure and draws it; while one is asked for, only the last wish waits, and two are a quarter of a second apart, so that
 * a live run may ask with every word. `onPoint({meta, index, text, data, x, y})` hears which
 * point is looked at, by pointer or keyboard; `onDrawn()` that it was drawn.
 * It follows the page's colours. Nothing in here throws: what goes wrong is a sentence in the chart's place.
 *
 * [data-figure=NAME] holds data-shows: waiting, empty, drawn or failed, data-points: how many say something, and data-asks while a newer one is asked for. Plotly keeps what is drawn in `.data` of `.drawing`.
 */
import { el, fill, setText, tag } from '../../scene/dom.js'
import { themeOf } from '../../scene/theme.js'

const APART = 250 // milliseconds between two questions
const CSS = new URL('chart.css', import.meta.url).href
const CONFIG = { displaylogo: false, responsive: true, scrollZoom: false, showTips: false }
const SVG = { // saved as a picture in two ways: Plotly's own button is the first; nothing is sent to any host
  name: 'svg', title: 'SVG', direction: 'up',
  icon: { width: 24, height: 24, path: 'M5 3h10l5 5v13H5zM8 17h8M8 13h8', },
}

let library = null

/** Plotly, from our own address, once for all charts of a page. */
function plotly(base) {
  library ??= new Promise((resolve, reject) => {
    if (window.Plotly) return resolve(window.Plotly)
    const script = el('script', { src: `${base}/plotly/plotly.min.js` })
    script.onload = () => resolve(window.Plotly)
    script.onerror = () => { library = null; script.remove(); reject(new Error('')) }
    document.head.append(script)
  })
  return library
}

export class Chart {
  constructor({ name, base = '', lang, words, scene, onPoint = () => {}, onDrawn = () => {} }) {
    Object.assign(this, { name, base, lang, words, scene, onPoint, onDrawn })
    this.frame = el('div', { class: 'drawing', tabindex: 0, role: 'group', onkeydown: (event) => this.key(event) })
    this.note = el('p', { class: 'hint', 'data-note': '' }, words.loading)
    this.said = el('p', { class: 'unseen', 'aria-live': 'polite' })
    this.source = el('span')
    this.links = ['csv', 'parquet'].map((form) => el('a', { 'data-form': form, download: `${name}.${form}` }, words[form]))
    this.foot = el('p', { class: 'hint foot', hidden: true }, this.source, ' ', words.save, ' ', ...this.links.flatMap((link, at) => (at ? [' · ', link] : [link])))
    this.root = el('figure', { class: 'chart', 'data-figure': name, 'data-shows': 'waiting' },
      el('link', { rel: 'stylesheet', href: CSS }), this.frame, this.note, this.said, this.foot)
    this.at = null
  }

  /** `query` fills the address; `rows` (a list of objects) are what the page has measured itself and nobody keeps. */
  show(query = {}, rows = null) {
    this.wish = { query, rows }
    this.going ??= this.work().finally(() => { this.going = null })
    return this.going
  }

  /** The frame itself, `sent` as the rows of `show`: {columns, rows: [{column: value}], about}. */
  async rows(query = {}, sent = null) {
    const { columns, rows, about } = await this.ask({ query, rows: sent }, 'rows')
    return { columns, about, rows: rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]]))) }
  }

  /** Whenever the page's colours change, it is drawn in them. */
  follow() {
    const home = this.root.closest('[data-theme]')
    if (!home || this.observer) return
    this.observer = new MutationObserver(() => this.show((this.wish ?? this.last).query, (this.wish ?? this.last).rows))
    this.observer.observe(home, { attributeFilter: ['data-theme'] })
  }

  async work() {
    this.root.dataset.asks = true
    while (this.wish && !this.closed) {
      const wish = (this.last = this.wish)
      this.wish = null
      this.follow()
      const pause = new Promise((resolve) => { setTimeout(resolve, APART) })
      try {
        await this.draw(await this.ask(wish))
      } catch (problem) {
        this.tell('failed', fill(this.words.failed, { why: problem.message || '' }))
      }
      if (this.wish) await pause
    }
    delete this.root.dataset.asks
  }

  address({ query }, form) {
    const known = Object.entries({ ...query, lang: this.lang, theme: this.lit(), ...(form && { format: form }) })
    return `${this.base}/api/figures/${this.name}?${new URLSearchParams(known.filter(([, value]) => value !== undefined && value !== null && value !== ''))}`
  }

  lit() {
    return this.root.closest('[data-theme]')?.dataset.theme || themeOf(this.root)
  }

  async ask(wish, form) {
    const reply = await fetch(this.address(wish, form), wish.rows && {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(wish.rows),
    })
    const told = await reply.json()
    if (!reply.ok) throw told.error
    return told
  }

  async draw(figure) {
    const { summary, source, origin } = figure.layout.meta
    if (!figure.data.length) return this.tell('empty', summary)
    const Plotly = await plotly(this.base)
    if (this.closed) return
    const file = { toImageButtonOptions: { format: 'png', filename: this.name, scale: 2 } }
    const button = { ...SVG, click: (graph) => Plotly.downloadImage(graph, { format: 'svg', filename: this.name }) }
    this.tell('drawn', '')
    await Plotly.react(this.frame, figure.data, figure.layout, { ...CONFIG, ...file, modeBarButtons: [['toImage', button]] })
    borrowStyles(this.frame)
    this.root.dataset.points = this.points().length
    this.frame.setAttribute('aria-label', `${summary} ${this.words.keys}`)
    this.source.replaceChildren(...(source ? [tag(this.scene, source), origin && ` ${origin}.`] : []))
    for (const link of this.links) link.href = this.address(this.last, link.dataset.form)
    this.foot.querySelectorAll('a').forEach((link) => { link.hidden = Boolean(this.last.rows) })
    if (!this.heard) {
      this.heard = true
      this.frame.on('plotly_hover', ({ points: [point] }) => this.look(point.curveNumber, point.pointNumber, false))
      this.frame.on('plotly_click', ({ points: [point] }) => this.look(point.curveNumber, point.pointNumber, true))
    }
    this.onDrawn()
  }

  tell(state, text) {
    this.root.dataset.shows = state
    this.frame.hidden = this.foot.hidden = state !== 'drawn'
    this.note.hidden = state === 'drawn'
    setText(this.note, text)
  }

  /** All points that have something to say, in the order of the traces: [[trace, point], …]. */
  points() {
    return (this.frame.data ?? []).flatMap((trace, k) => (trace.hovertext ?? []).map((_, index) => [k, index]))
  }

  /** What one of them is and says. */
  point(k, index) {
    const { meta, hovertext, customdata, x, y } = this.frame.data[k]
    const text = hovertext?.[index]
    return { meta, index, text: text && plain(text), data: customdata?.[index], x: x[index], y: y[index] }
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key]
    const points = this.points()
    if (!points.length || !(step || event.key === 'Home' || event.key === 'End')) return
    event.preventDefault()
    event.stopPropagation()
    const was = points.findIndex(([k, index]) => k === this.at?.[0] && index === this.at?.[1])
    const next = event.key === 'Home' ? 0 : event.key === 'End' ? points.length - 1
      : was < 0 ? (step > 0 ? 0 : points.length - 1) : Math.max(0, Math.min(points.length - 1, was + step))
    this.look(...points[next], true)
  }

  look(k, index, spoken) {
    const point = this.point(k, index)
    if (point.text === undefined) return
    const { xaxis = 'x', yaxis = 'y' } = this.frame.data[k]
    this.at = [k, index]
    if (spoken) {
      setText(this.said, point.text)
      try {
        window.Plotly.Fx.hover(this.frame, [{ curveNumber: k, pointNumber: index }], [`${xaxis}${yaxis}`])
      } catch {
        // the value is said all the same
      }
    }
    this.onPoint(point)
  }

  close() {
    this.closed = true
    this.observer?.disconnect()
    if (this.heard) window.Plotly.purge(this.frame)
  }
}

/** Without marks; a broken line joined again, in Chinese without a space. */
const plain = (text) => text.replace(/(?<=[\u2e80-\uffef])<br>(?=[\u2e80-\uffef])/g, '').replaceAll('<br>', ' ').replace(/<[^>]*>/g, '')

/** Plotly puts its few styles into the document; a shadow root does not see them, so they are copied into it. */
function borrowStyles(element) {
  const root = element.getRootNode()
  if (!(root instanceof ShadowRoot)) return
  const rules = [...document.querySelectorAll('style[id^="plotly.js-style"]')]
    .flatMap(({ sheet }) => [...sheet.cssRules].map((rule) => rule.cssText)).join('\n')
  let own = root.querySelector('style[data-plotly]')
  if (!own) root.append(own = el('style', { 'data-plotly': '' }))
  setText(own, rules)
}
