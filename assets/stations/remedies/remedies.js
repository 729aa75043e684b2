/**
 * The entry page of the remedies: one row each, what it gained on this machine and when that was measured, or what was
 * recorded on another (`options.remedies` brings it, so that the table is whole at first sight); what of a row was not
 * measured here stands in it, and one button measures that.
 *
 * Each row is [data-remedy=NAME] with data-gained (true or false, of this machine), data-source (whose gain is told:
 * measured, recorded or none), data-values (JSON of the figures it tells), data-measured and data-of (pieces).
 */
import { el, fill, rich, setText, tag } from '../../scene/dom.js'
import { number } from '../../scene/text.js'
import { Missing } from './missing.js'
import { mountStation } from '../shared/station.js'
import { OtherModel } from '../shared/other_model.js'

const SHEETS = ['../two_stages/two_stages.css', '../lab/lab.css'].map((name) => new URL(name, import.meta.url).href)
const AGAIN = 1500 // milliseconds until a model that is being loaded is asked for once more
const SIMULATED = ['disaggregation']

export const mount = (element, options) => mountStation(element, options, (station) => new Remedies(station))

class Remedies {
  constructor(station) {
    this.station = station
    this.words = station.words
    this.options = station.options
    this.labs = {} // what GET /api/labs tells of each, once a model is loaded
    this.plans = {} // and what there is to measure of it
    this.refused = {} // by lab: what cannot be measured here, by piece
    this.styled = SHEETS.map((href) => {
      const link = el('link', { rel: 'stylesheet', href })
      return [link, new Promise((resolve) => { link.onload = link.onerror = resolve })]
    })
    this.body = el('tbody')
    this.told = el('p', { class: 'hint', 'data-told': '', 'aria-live': 'polite' })
    this.missing = this.button()
    const { columns } = this.words
    const heads = ['technique', 'problem', 'stage', 'plain', 'gained'].map((name) => el('th', { scope: 'col' }, columns[name]))
    this.root = el('div', { class: 'body stages lab remedies', 'data-missing': '' }, ...this.styled.map(([link]) => link),
      el('section', { class: 'sheet' }, el('p', {}, this.words.lead), this.missing.root, el('div', { class: 'wide' },
        el('table', {}, el('thead', {}, el('tr', {}, ...heads)), this.body)), this.told))
    this.draw()
  }

  button() {
    const { words, options } = this
    const missing = new Missing({
      words, errors: options.errors, base: options.base ?? '', lang: options.lang, desk: {}, label: words.all.measure, again: words.all.done, name: 'all',
      title: (lab) => words.rows[lab].technique,
      onResult: (name, result, piece) => this.came(piece),
      onOver: () => this.closed || this.draw(),
      onRefused: ({ lab, piece }, message) => {
        this.refused[lab] = { ...this.refused[lab], [piece]: message }
        this.draw()
      },
    })
    missing.at = ({ lab }) => {
      this.now = lab
      this.draw()
    }
    missing.plan(null)
    return missing
  }

  async start() {
    await Promise.all(this.styled.map(([, loaded]) => loaded))
    await this.look()
  }

  close() {
    this.closed = true
    clearTimeout(this.later)
    this.missing.stop()
  }

  async look() {
    try {
      await this.ask()
      setText(this.told, this.words.kept)
      await this.askPlans()
    } catch (problem) {
      setText(this.told, problem.message)
      if (problem.code === 'model_not_ready' && !this.closed) this.later = setTimeout(() => this.look(), AGAIN)
    }
  }

  async ask() {
    const { model, labs } = await this.station.ask('labs')
    this.model = model
    this.labs = Object.fromEntries(labs.map((lab) => [lab.name, lab]))
    this.draw()
  }

  /** What there is to measure of each, one after another: the engine answers between two steps of somebody's run. */
  async askPlans() {
    for (const name of this.order()) {
      if (this.closed) return
      const { plan, results } = await this.station.ask(`labs/${name}`)
      this.plans[name] = plan.map((piece) => ({ ...piece, done: piece.piece in results }))
      this.offer()
      this.draw()
    }
  }

  order() {
    return this.options.remedies.map(({ name }) => name).filter((name) => name in this.labs)
  }

  /** The pieces still to measure: not those that only add to a page, nor those that are known not to work here. */
  left(name) {
    return (this.plans[name] ?? []).filter(({ piece, done, needed, lacking }) => !done && needed !== false && !lacking && !this.refused[name]?.[piece])
  }

  offer() {
    const missing = () => this.order().flatMap((name) => this.left(name).map(({ piece }) => ({ kind: 'lab', lab: name, piece, model: this.model })))
    const { length } = missing()
    this.root.dataset.missing = length
    this.missing.plan(missing, !length)
    this.missing.start.disabled = !length
    if (this.missing.told.dataset.state === 'idle') this.missing.state('idle', length ? this.words.all.missing : '')
  }

  /** A piece was measured: its row says what that comes to. */
  async came({ lab, piece }) {
    this.plans[lab] = this.plans[lab].map((one) => (one.piece === piece ? { ...one, done: true } : one))
    await this.ask()
    this.offer()
  }

  draw() {
    const going = this.missing?.told.dataset.state === 'running'
    this.body.replaceChildren(...this.options.remedies.map((remedy) => this.row(remedy, this.labs[remedy.name], going && this.now === remedy.name)))
  }

  row({ name, stage, path, recorded }, lab, now) {
    const { columns, rows, stages } = this.words
    const { technique, problem, plain } = rows[name]
    const cell = (column, attributes, ...content) => el('td', { 'data-label': columns[column], ...attributes }, ...content)
    const plan = this.plans[name] ?? []
    const shown = lab?.gained ?? recorded?.gained ?? null
    return el('tr', {
      class: now ? 'now' : '', 'data-remedy': name, 'data-gained': String(Boolean(lab?.gained)), 'data-source': lab?.gained ? 'measured' : shown ? 'recorded' : 'none',
      'data-values': JSON.stringify(shown), 'data-measured': plan.filter(({ done }) => done).length, 'data-of': plan.length,
    },
    el('th', { scope: 'row' }, path ? this.link(name, path, technique) : technique),
    cell('problem', {}, problem),
    cell('stage', {}, el('span', { class: `stage ${stage}` }, stages[stage])),
    cell('plain', { class: 'plain' }, plain),
    cell('gained', { class: 'gained' }, ...this.gained(name, lab, recorded), ...this.pieces(name, path, lab)))
  }

  /** What it gained, here or as recorded, and whence that is known. */
  gained(name, lab, recorded) {
    const { words, options } = this
    const own = lab?.gained
    const shown = own ?? recorded?.gained
    if (!shown) return []
    const values = Object.fromEntries(Object.entries(shown).map(([gap, value]) => [gap, typeof value === 'number' ? told(value) : value]))
    const { taken, machine, model } = own ? lab : recorded
    const when = new Date(taken).toLocaleString(options.lang === 'zh' ? 'zh-CN' : 'en-GB', { dateStyle: 'medium', timeStyle: 'short' })
    const kind = own ? (SIMULATED.includes(name) ? 'simulated' : 'measured') : 'recorded'
    const whence = own ? fill(words.when, { when }) : fill(words.elsewhere, { model, device: machine.device_name || machine.device, when })
    return [...rich(words.gained[name], values), ' ', tag(options.scene, kind, true), el('small', {}, whence), ...(own ? [] : [this.other(model)])]
  }

  /** What was recorded with another model than the one loaded here says so. */
  other(model) {
    const other = new OtherModel(this.words)
    other.show(this.model, model)
    return other.root
  }

  /** How much of it is measured here, where to measure it, and what cannot be. */
  pieces(name, path, lab) {
    const { words } = this
    const plan = (this.plans[name] ?? []).filter(({ needed }) => needed !== false)
    const done = plan.filter((piece) => piece.done).length
    const refused = Object.entries(this.refused[name] ?? {})
    const left = plan.length ? done < plan.length : !lab?.measured
    const said = done || lab?.measured ? words.pieces : plan.length ? words.untouched_of : words.untouched
    return [...(left ? [el('small', { 'data-left': '' }, fill(said, { n: done, of: plan.length }), ...(path ? [' ', this.link(name, path, words.measure)] : []))] : []),
      ...refused.map(([piece, message]) => el('small', { class: 'refused', 'data-refused': piece }, fill(words.refused, { piece, message })))]
  }

  /** A real link to a remedy's page, with the place; a plain click stays in this session. */
  link(name, path, text) {
    const query = { ...Object.fromEntries(new URLSearchParams(location.search)), lang: this.options.lang }
    return el('a', {
      href: `${path}?${new URLSearchParams(query)}`, 'data-to': name, onclick: (event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
        event.preventDefault()
        this.options.onPage({ name, query })
      },
    }, text)
  }
}

/** A figure as a person says it: whole from 100 on, one decimal below, two below 1. */
const told = (value) => (Number.isInteger(value) ? number(value) : number(value, value >= 100 ? 0 : value >= 1 ? 1 : 2))
