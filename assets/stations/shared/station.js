// @ts-check
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

/**
 * @import {Connection, Refusal} from '../../scene/source.js'
 * @import {Theme} from '../../scene/theme.js'
 * @import {TraceEvent} from '../../scene/trace/events.js'
 *
 * @typedef {(typeof import('../../words/en/stations.json'))} SharedWords
 * @typedef {SharedWords & Record<'title' | 'analogy' | 'remember' | 'limit', string>} StationWords
 * @typedef {(typeof import('../../words/en/scene.json'))} SceneWords
 * @typedef {{id: string, title: string, recorded?: boolean, model?: string}} Listed a run of `/runs`
 * @typedef {{at?: number | null, layer?: number | null, head?: number | null}} Place a moment of the address
 *
 * @typedef {object} Options what views/station.py tells, and what the page hears
 * @property {string} base
 * @property {'en' | 'zh'} lang
 * @property {string} run
 * @property {Place} moment
 * @property {StationWords} words
 * @property {SceneWords} scene
 * @property {Record<string, string>} errors
 * @property {Theme} theme
 * @property {unknown} [kept]
 * @property {(run: string) => void} onRun
 *
 * @typedef {object} Body what a station draws
 * @property {Node} root
 * @property {() => unknown} start
 * @property {() => void} [close]
 * @property {() => unknown} [kept]
 * @property {(options: Options) => void} [update]
 */

/**
 * @template {Options} O
 * @param {HTMLElement} element
 * @param {O} options
 * @param {(station: Station<O>) => Body} build
 */
export function mountStation(element, options, build) {
  let station = new Station(element, options, build)
  return {
    /** @param {Partial<O>} changes */
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

/** @template {Options} [O=Options] */
export class Station {
  /** @param {HTMLElement} element @param {O} options @param {(station: Station<O>) => Body} build */
  constructor(element, options, build) {
    this.element = element
    this.options = { ...options, base: options.base ?? '' }
    this.closed = false
    this.recorded = false
    /** @type {() => void} */
    this.unfollow = () => {}
    this.resize = () => this.fit()
    /** @type {O['words']} */
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
    this.fit()
    addEventListener('resize', this.resize)
    this.root.style.visibility = ''
    await this.list()
    if (!this.closed) await this.body.start()
    if (!this.closed) this.root.dataset.ready = 'true'
  }

  fit() {
    const u = unitOf(innerWidth, innerHeight - BAR)
    this.root.style.setProperty('--u', `${u}px`)
    this.root.style.setProperty('--h', `calc(100vh - ${BAR * u}px)`)
    this.root.dataset.layout = innerWidth <= PHONE ? 'phone' : 'wide'
  }

  /** @param {Theme} theme */
  light(theme) {
    this.root.dataset.theme = theme
  }

  /**
   * A question to the service. Throws a `Refusal` with a sentence in `message`.
   *
   * @template T
   * @param {string} path
   * @param {object} [body]
   * @returns {Promise<T>}
   */
  async ask(path, body) {
    try {
      return await ask(this.options.base, path, this.lang, body)
    } catch (problem) {
      const refusal = /** @type {Refusal} */ (problem)
      throw { ...refusal, message: this.sentence(refusal) }
    }
  }

  /** @param {Refusal} refusal */
  sentence({ code, values, message }) {
    const known = this.options.errors[code]
    return message || (known && fill(known, values)) || this.words.unreachable
  }

  /** The runs to choose from: this person's own, and the recordings. */
  async list() {
    const { run } = this.options
    /** @type {Listed[]} */
    let runs = []
    try {
      /** @type {{runs: Listed[]}} */
      const listed = await this.ask(`runs?owner=${encodeURIComponent(owner())}`)
      runs = listed.runs
    } catch {
      // the page tells why; the run on it stays
    }
    if (this.closed) return
    this.recorded = runs.some(({ id, recorded }) => id === run && Boolean(recorded))
    if (!runs.some(({ id }) => id === run)) runs.unshift({ id: run, title: run })
    this.picker.replaceChildren(...runs.map(({ id, title, recorded }) =>
      el('option', { value: id }, recorded ? fill(this.words.run_recorded, { title }) : title)))
    this.picker.value = run
    this.picker.title = this.picker.selectedOptions[0]?.textContent ?? '' // a long one is cut
  }

  /** The run's events as they come; `onState` hears how it goes. @param {(events: TraceEvent[]) => void} onEvents @param {(state: Connection) => void} onState */
  follow(onEvents, onState) {
    this.unfollow = new ServiceSource(this.options.base, this.options.run).events(0, onEvents, () => {}, onState)
  }

  close() {
    this.closed = true
    removeEventListener('resize', this.resize)
    this.unfollow()
    this.body.close?.()
    this.root.remove()
  }
}

/** When each sheet has come, or cannot be had. @type {WeakMap<Element, Promise<unknown>>} */
const coming = new WeakMap()

/** @param {HTMLElement} element */
function loadSheet(element) {
  const root = element.getRootNode()
  const home = root instanceof ShadowRoot ? root : document.head
  const present = home.querySelector('link[data-exam-stations]')
  if (present) return loaded(present)
  const link = stylesheet(new URL('station.css', import.meta.url).href)
  link.dataset.examStations = ''
  home.append(link)
  return loaded(link)
}

/** A link to a sheet, to be put somewhere; `loaded` tells when it is there. @param {string} href */
export function stylesheet(href) {
  const link = el('link', { rel: 'stylesheet', href })
  coming.set(link, new Promise((resolve) => {
    link.onload = resolve
    link.onerror = resolve
  }))
  return link
}

/** Until a sheet is there, or cannot be had. @param {Element} link @returns {Promise<unknown>} */
export const loaded = (link) => coming.get(link) ?? Promise.resolve()

/**
 * One of a station's sheets of paper: `words[name]` has its title.
 *
 * @template {string} Name
 * @param {Record<Name, {title: string}>} words
 * @param {Name} name
 * @param {(Node | string)[]} children
 */
export const part = (words, name, ...children) =>
  el('section', { class: 'sheet', 'data-part': name }, el('header', {}, el('h2', {}, words[name].title)), ...children)
