/**
 * A remedy's page: the problem on the run on show, the idea stepped through, before and after measured here, the proof,
 * both sat side by side, and when it does not help.
 *
 * `mountLab(element, options, make)`: `make(lab)` gives the parts that the remedy draws itself, any of
 * `{problem, idea, measured, proof}`, each `{root, show?(), resize?(), close?()}`. `show` is called whenever there is more
 * to draw: the run is told (`lab.started`, `lab.events`, `lab.facts`, `lab.summary`), or figures are (`lab.told`: what
 * GET /api/labs/NAME answers, `lab.figures`). Whatever a remedy says stands in its own words; `lab.common` are those
 * of every lab. Where nothing was measured here, `lab.figures` are those of a recorded result, and `lab.tag()` says so; a
 * part with such a tag says, too, when the figures are another model's than the run's.
 * `first: 'idea'` among the parts puts the idea before the problem, and its lead after it. A part's charts are made by
 * `lab.chart(name)` and drawn by `lab.draw(chart, {pick})`.
 * [data-lab] tells how much is measured, and in [data-figures] whose figures are shown: own, recorded or none.
 * [data-state] is as on the other stations.
 */
import { owner } from '../../scene/compose/compose.js'
import { button, el, fill, setText, tag } from '../../scene/dom.js'
import { number } from '../../scene/text.js'
import { RunApi } from '../shared/api.js'
import { Chart } from '../shared/chart.js'
import { Both } from './both.js'
import { Measuring } from '../shared/measuring.js'
import { mountStation } from '../shared/station.js'
import { OtherModel } from '../shared/other_model.js'

const SHEETS = ['../two_stages/two_stages.css', 'lab.css'].map((name) => new URL(name, import.meta.url).href)
const AGAIN = 1500 // milliseconds until a model that is being loaded is asked for once more
const BUSY = 0.1

export const mountLab = (element, options, make) => mountStation(element, options, (station) => new Lab(station, make))

export class Lab {
  constructor(station, make) {
    this.station = station
    this.options = station.options
    this.words = station.words
    const { words, options } = this
    this.name = options.module.match(/(\w+)\.js$/)[1]
    Object.assign(this, { scene: options.scene, lang: options.lang, base: options.base ?? '', errors: options.errors, unreachable: words.unreachable })
    this.events = []
    this.charts = []
    this.others = [] // of each part, the sentence that its figures are another model's
    this.api = new RunApi(this.base, options.run, options.lang)
    this.state = el('p', { class: 'state', 'data-state': 'waiting', 'aria-live': 'polite' }, this.common.state.waiting)
    this.measuring = this.measures()
    this.source = el('p', { class: 'hint', 'data-source': '' })
    this.trouble = el('p', { class: 'hint', 'data-trouble': '', 'aria-live': 'polite' })
    this.turn = button('', () => this.see(!this.recorded), { class: 'pill', 'data-do': 'recorded', hidden: true })
    this.both = new Both(this)
    this.parts = make(this)
    this.styled = SHEETS.map((href) => {
      const link = el('link', { rel: 'stylesheet', href })
      return [link, new Promise((resolve) => { link.onload = link.onerror = resolve })]
    })
    this.root = el('div', { class: `body stages lab ${this.name}`, 'data-lab': this.name, 'data-measured': '', 'data-of': '', 'data-figures': 'none' },
      ...this.styled.map(([link]) => link), ...this.opening(),
      this.part('measured', el('div', { class: 'row measures' }, this.measuring.root, this.turn), this.trouble, this.source, this.parts.measured?.root),
      this.part('proof', this.parts.proof?.root), this.part('both', this.both.root), this.part('not', this.points()))
  }

  get common() {
    return this.options.common
  }

  /** The line that tells of the run, the problem and the idea; where the idea is what one sees first, before them. */
  opening() {
    const [problem, idea] = ['problem', 'idea'].map((name) => this.part(name, this.parts[name]?.root))
    if (this.parts.first !== 'idea') return [this.state, problem, idea]
    const lead = idea.querySelector(':scope > header + p')
    if (lead) idea.append(lead)
    return [idea, this.state, problem]
  }

  /** A chart that the service draws from this lab's results. */
  chart(name, more = {}) {
    const chart = new Chart({ name, base: this.base, lang: this.lang, words: this.words.chart, scene: this.scene, ...more })
    this.charts.push(chart)
    return chart
  }

  /** Have a chart drawn from the results on show, unless it shows just that; `more`: what it is asked for beside them. */
  draw(chart, more = {}) {
    const query = { lab: this.name, model: this.shown.model, recorded: this.recorded || null, ...more }
    const key = JSON.stringify([query, Object.values(this.results).map(({ taken }) => taken)])
    if (chart.key === key) return
    chart.key = key
    chart.show(query)
  }

  /** A sheet with its title (the remedy's own, else every lab's) and lead. */
  part(name, ...content) {
    const { words, common } = this
    const lead = words[name]?.lead
    const other = new OtherModel(words)
    const sheet = el('section', { class: 'sheet', 'data-part': name }, el('header', {}, el('h2', {}, words[name]?.title ?? common.titles[name])),
      ...(lead ? [el('p', {}, lead)] : []), ...(name === 'problem' && words.story ? [el('p', {}, words.story)] : []), other.root, ...content.filter(Boolean))
    this.others.push({ other, sheet })
    return sheet
  }

  /** When it does not help: each of the words' points. */
  points() {
    const points = Object.entries(this.words.not ?? {}).filter(([name]) => !['title', 'lead'].includes(name))
    return points.length ? el('ul', { class: 'points' }, ...points.map(([, text]) => el('li', {}, text))) : null
  }

  measures() {
    const { words, common, errors, base, lang } = this
    const told = { ...words, measuring: { ...words.measuring, what: { lab: common.piece } } }
    return new Measuring({ words: told, errors, base, lang, desk: {}, label: common.measure, again: common.again, name: 'measure', onResult: () => this.look() })
  }

  async start() {
    await Promise.all(this.styled.map(([, loaded]) => loaded))
    this.resize = () => Object.values(this.parts).forEach((part) => part.resize?.())
    addEventListener('resize', this.resize)
    await new Promise((resolve) => {
      this.station.follow(async (events) => {
        await this.take(events)
        resolve()
      }, (state) => {
        if (state === 'live') return
        this.say(state, this.words[state])
        resolve()
      })
    })
  }

  close() {
    this.closed = true
    removeEventListener('resize', this.resize)
    clearTimeout(this.later)
    this.measuring.stop()
    this.both.close()
    for (const part of [...Object.values(this.parts), ...this.charts]) part.close?.()
  }

  kept() {
    return Object.assign({ sat: this.both.sat }, ...Object.values(this.parts).map((part) => part.kept?.()))
  }

  update() {
    this.resize?.() // light or dark: what is drawn on canvas is drawn anew
  }

  say(state, ...content) {
    this.state.dataset.state = state
    this.state.replaceChildren(...content)
  }

  async take(events) {
    this.events.push(...events)
    const { state } = this.common
    for (const event of events) {
      if (event.type === 'queued') this.say('waiting', fill(state.queued, { n: event.ahead }))
      if (event.type === 'started') this.say('running', state.running)
    }
    if (events.at(-1).type === 'finished') await this.over(events.at(-1))
  }

  async over(finished) {
    this.started = this.events.find((event) => event.type === 'started')
    this.facts = this.started?.facts
    this.summary = await this.api.json().catch(() => null)
    this.ending(finished)
    await this.look()
    if (!this.told) this.show()
  }

  ending({ reason, code, values }) {
    const { summary } = this
    const { state } = this.common
    const broke = reason === 'error' || reason === 'out_of_memory'
    const title = summary?.title ?? ''
    const told = broke
      ? fill(state.failed, { why: fill(this.errors[code] ?? '', Object.fromEntries(values ?? [])) })
      : fill(state[summary?.recorded ? 'recorded' : 'own'], { title })
    const again = summary?.kept || !this.started ? '' : button(state.again, () => this.again(), { class: 'pill main', 'data-do': 'again' })
    this.say(broke ? 'failed' : 'finished', told, ' ', again)
  }

  /** Whether the engine holds this run's tensors, so that the idea can be drawn from them. */
  get held() {
    return Boolean(this.summary?.kept)
  }

  /** The same paper once more, here: then its own Q, K and V are there. */
  async again() {
    try {
      const { id } = await this.station.ask('runs', { ...this.started.settings, fork: null, owner: owner(), keep: true })
      this.options.onRun(id)
    } catch (problem) {
      this.state.append(' ', problem.message)
    }
  }

  /** What is kept of this remedy with the run's model, else with the usual one. Asks again while a model is loaded. */
  async look(model = this.facts?.model ?? '') {
    this.shipped ??= await this.station.ask(`labs/${this.name}/recorded`).catch(() => null)
    try {
      this.own = await this.station.ask(`labs/${this.name}?model=${encodeURIComponent(model)}`)
      setText(this.trouble, '')
    } catch (problem) {
      if ((problem.code === 'model_absent' || problem.code === 'unknown_model') && model) return this.look('')
      setText(this.trouble, problem.message)
      if (problem.code === 'model_not_ready' && !this.closed) this.later = setTimeout(() => this.look(model), AGAIN)
    }
    if (!this.closed) this.show()
    return undefined
  }

  /** What the engine tells of this lab with a model loaded here; else what was recorded tells of its plan and runs. */
  get told() {
    return this.own ?? this.shipped ?? null
  }

  /** Whether a recorded result is on show: as asked for, else where there is nothing of this machine's. */
  get recorded() {
    if (!this.shipped || !this.measured) return Boolean(this.shipped)
    return Boolean(this.asked)
  }

  get measured() {
    return Object.keys(this.own?.results ?? {}).length > 0
  }

  get shown() {
    return this.recorded ? this.shipped : this.own
  }

  get figures() {
    return this.shown?.figures ?? null
  }

  get results() {
    return this.shown?.results ?? {}
  }

  /** A mark for figures of this lab: measured here, or recorded. */
  tag() {
    const mark = tag(this.scene, this.recorded ? 'recorded' : 'measured', true)
    mark.dataset.ofLab = ''
    return mark
  }

  see(recorded) {
    this.asked = recorded
    this.show()
  }

  show() {
    const { own, common, root } = this
    if (own) {
      const missing = own.plan.filter(({ piece }) => !(piece in own.results))
      Object.assign(root.dataset, { measured: own.plan.length - missing.length, of: own.plan.length })
      this.measuring.plan(() => (missing.length ? missing : own.plan).map(({ piece }) => ({ kind: 'lab', lab: this.name, piece, model: own.model })), !missing.length)
      this.both.ready(own)
    }
    root.dataset.figures = this.recorded ? 'recorded' : this.measured ? 'own' : 'none'
    setText(this.source, [...(own && !this.measured ? [common.unmeasured] : []), ...(this.shown ? this.whence(this.shown) : [])].join(' '))
    setText(this.turn, common[this.recorded ? 'see_own' : 'see_recorded'])
    this.turn.hidden = !(this.shipped && this.measured)
    for (const part of Object.values(this.parts)) part.show?.()
    for (const { other, sheet } of this.others) other.show(sheet.querySelector('[data-of-lab]') && this.facts?.model, this.shown?.model)
  }

  /** Where the figures come from, in sentences. */
  whence({ machine, results, model, plan }) {
    const { common, words } = this
    const all = Object.values(results)
    if (!all.length) return []
    const when = new Date(this.recorded ? this.shipped.taken : all.map(({ taken }) => taken).sort().at(-1)).toLocaleString(this.lang === 'zh' ? 'zh-CN' : 'en-GB', { dateStyle: 'medium', timeStyle: 'short' })
    const busy = Math.max(0, ...all.map(({ busy }) => busy ?? 0))
    const done = plan.filter(({ piece }) => piece in results).length
    return [
      fill(common[this.recorded ? 'recorded' : 'source'], { device: machine.device_name || machine.device, threads: machine.threads, dtype: machine.dtype, torch: machine.torch, model, when }),
      ...(done < plan.length ? [fill(common.partly, { n: done, of: plan.length })] : []),
      ...(busy > BUSY ? [fill(words.measuring.busy, { cores: number(busy, 1) })] : []),
    ]
  }
}
