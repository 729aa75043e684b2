/**
 * What the stations' pages share: the head with its analogy and the run, the line to remember, where the analogy stops.
 *
 * `mountStation(element, options, build)` → {update(options), destroy()}, mounted as the scene is (../../scene/mount.js).
 * `build(station)` gives {root, start(), close(), kept()?, update(options)?}; what `kept` tells is handed to the next
 * build as `options.kept`, so that a change of language loses nothing that was typed.
 *
 * A station with a sheet of its own puts `stylesheet(href)` into its root and waits for `loaded`; `part` is a section.
 */
import { owner } from '../../scene/compose/compose.js'
import { el, fill } from '../../scene/dom.js'
import { ask, ServiceSource } from '../../scene/source.js'
import { loadFonts, loadStyles, PHONE, unitOf } from '../../scene/theme.js'

const BAR = 3 // units that the bar above takes

export function mountStation(element, options, build) {
  let station = new Station(element, options, build)
  return {
    update(changes) {
      const next = { ...station.options, ...changes }
      if (next.lang === station.options.lang && next.run === station.options.run) {
        station.light(next.theme)
        return station.body.update?.(next)
      }
      const kept = next.run === station.options.run ? station.body.kept?.() : undefined
      station.close()
      station = new Station(element, { ...next, kept }, build)
    },
    destroy: () => station.close(),
  }
}

export class Station {
  constructor(element, options, build) {
    this.element = element
    this.options = { base: '', ...options }
    this.words = options.words
    this.lang = options.lang
    this.body = build(this)
    this.picker = el('select', { 'aria-label': this.words.run, 'data-do': 'run' })
    this.picker.addEventListener('change', () => options.onRun(this.picker.value))
    this.root = el('main', { class: 'exam-scene station', lang: this.lang === 'zh' ? 'zh-CN' : 'en', style: 'visibility: hidden' },
      el('header', { class: 'head' },
        el('div', {}, el('h1', {}, this.words.title), el('p', {}, this.words.analogy)),
        el('label', { class: 'run' }, this.words.run, this.picker)),
      this.body.root,
      el('footer', { class: 'learnt' },
        el('p', { class: 'remember' }, el('b', {}, this.words.remember_label), this.words.remember),
        el('p', { class: 'limit' }, el('b', {}, this.words.limit_label), this.words.limit)))
    this.light(options.theme)
    element.replaceChildren(this.root)
    this.start()
  }

  async start() {
    await Promise.all([loadStyles(this.element), loadSheet(this.element), loadFonts(this.lang)])
    if (this.closed) return
    this.resize = () => {
      const u = unitOf(innerWidth, innerHeight - BAR)
      this.root.style.setProperty('--u', `${u}px`)
      this.root.style.setProperty('--h', `calc(100vh - ${BAR * u}px)`)
      this.root.dataset.layout = innerWidth <= PHONE ? 'phone' : 'wide'
    }
    this.resize()
    addEventListener('resize', this.resize)
    this.root.style.visibility = ''
    await this.list()
    if (!this.closed) await this.body.start()
    if (!this.closed) this.root.dataset.ready = 'true'
  }

  light(theme) {
    this.root.dataset.theme = theme
  }

  /** A question to the service. Throws `{code, values, message}` with a sentence in `message`. */
  async ask(path, body) {
    try {
      return await ask(this.options.base, path, this.lang, body)
    } catch (refusal) {
      throw { ...refusal, message: this.sentence(refusal) }
    }
  }

  sentence({ code, values, message }) {
    const known = this.options.errors[code]
    return message || (known && fill(known, values)) || this.words.unreachable
  }

  /** The runs to choose from: this person's own, and the recordings. */
  async list() {
    const { run } = this.options
    let runs = []
    try {
      runs = (await this.ask(`runs?owner=${encodeURIComponent(owner())}`)).runs
    } catch {
      // the page tells why; the run on it stays
    }
    if (this.closed) return
    this.recorded = runs.some(({ id, recorded }) => id === run && recorded)
    if (!runs.some(({ id }) => id === run)) runs.unshift({ id: run, title: run })
    this.picker.replaceChildren(...runs.map(({ id, title, recorded }) =>
      el('option', { value: id }, recorded ? fill(this.words.run_recorded, { title }) : title)))
    this.picker.value = run
    this.picker.title = this.picker.selectedOptions[0]?.textContent ?? '' // a long one is cut
  }

  /** The run's events as they come; `onState` hears 'live', 'lost' or 'refused'. */
  follow(onEvents, onState) {
    this.unfollow = new ServiceSource(this.options.base, this.options.run).events(0, onEvents, () => {}, onState)
  }

  close() {
    this.closed = true
    removeEventListener('resize', this.resize)
    this.unfollow?.()
    this.body.close?.()
    this.root.remove()
  }
}

function loadSheet(element) {
  const root = element.getRootNode()
  const home = root instanceof ShadowRoot ? root : document.head
  const present = home.querySelector('link[data-exam-stations]')
  if (present) return present.loaded
  const link = stylesheet(new URL('station.css', import.meta.url).href)
  link.dataset.examStations = true
  home.append(link)
  return link.loaded
}

/** A link to a sheet; its `loaded` is kept once it is there, or cannot be had. */
export function stylesheet(href) {
  const link = el('link', { rel: 'stylesheet', href })
  link.loaded = new Promise((resolve) => {
    link.onload = resolve
    link.onerror = resolve
  })
  return link
}

/** One of a station's sheets of paper: `words[name]` has its title. */
export const part = (words, name, ...children) =>
  el('section', { class: 'sheet', 'data-part': name }, el('header', {}, el('h2', {}, words[name].title)), ...children)
