/** The scene: one run on one desk. Puts the trace, the clock and the drawings together. */
import { buildFrame } from './frame.js'
import { Trace } from './trace/trace.js'
import { Player } from './play/player.js'
import { Lens } from './lens.js'
import { momentAt } from './trace/moment.js'
import { ServiceSource } from './source.js'
import { loadFonts, loadStyles, paletteOf, partUnitOf, PHONE, themeOf, unitOf } from './theme.js'
import { visible } from './text.js'
import { Controls } from './controls.js'
import { Compose } from './compose/compose.js'
import { Actions } from './actions.js'
import { Engine } from './engine.js'
import { Links } from './links.js'
import { Equivalent } from './equivalent.js'
import { Rail } from './draw/rail.js'
import { Headline } from './draw/headline.js'
import { Paper } from './draw/paper.js'
import { Scratch } from './draw/scratch.js'
import { Answer } from './draw/answer.js'
import { Candidates } from './draw/candidates.js'
import { Timeline } from './draw/timeline.js'
import { Transport } from './draw/transport.js'

const NOTHING = {
  attention: () => Promise.reject(new Error('no run')),
  summary: async () => null,
  events: () => () => {},
}

export class Scene {
  constructor(element, options) {
    this.element = element
    this.options = options
    this.words = { ...options.words, lang: options.lang === 'zh' ? 'zh-CN' : 'en' }
    this.lang = options.lang
    this.errors = options.errors
    this.run = null
    this.kind = 'measured'
    this.connection = 'live'
    this.view = {}
    // One of several on one clock: the sheets and the timeline; form, buttons, rail and player are the page's.
    this.part = Boolean(options.clock)
    this.calm = matchMedia('(prefers-reduced-motion: reduce)').matches
    this.parts = buildFrame(this.words)
    this.parts.root.style.visibility = 'hidden'
    element.replaceChildren(this.parts.root)
    this.blank()
    this.rail = new Rail(this)
    this.headline = new Headline(this)
    this.paper = new Paper(this)
    this.scratch = new Scratch(this)
    this.answer = new Answer(this)
    this.candidates = new Candidates(this)
    this.timeline = new Timeline(this)
    this.transport = new Transport(this)
    // In this order: the answer's room depends on the candidates, the timeline says the headline.
    this.drawings = this.part
      ? [this.headline, this.scratch, this.answer, this.timeline]
      : [
          this.rail,
          this.headline,
          this.scratch,
          this.paper,
          this.candidates,
          this.answer,
          this.timeline,
          this.transport,
        ]
    this.equivalent = new Equivalent(this)
    this.compose = new Compose(this)
    this.actions = new Actions(this)
    this.engine = new Engine(this)
    this.controls = new Controls(this)
    this.links = new Links(this)
    this.start()
  }

  async start() {
    await Promise.all([loadStyles(this.element), loadFonts(this.lang)])
    if (this.closed) return
    this.resizes = new ResizeObserver(() => this.resize())
    this.resizes.observe(this.element)
    this.onWindow = () => this.resize()
    this.parts.sensor.addEventListener('transitionend', this.onWindow)
    addEventListener('resize', this.onWindow)
    document.fonts.addEventListener('loadingdone', this.onWindow)
    this.reset()
    this.resize()
    this.parts.root.style.visibility = ''
    if (this.options.run) this.open(this.options.run, this.options.moment)
    else if (!this.part) this.compose.open()
    if (!this.options.source && !this.part) this.engine.watch()
    this.parts.root.dataset.ready = 'true'
  }

  /** A new sheet of everything, with no run on it. */
  blank() {
    this.trace = new Trace()
    this.source = NOTHING
    this.player?.close()
    this.lens?.close()
    const draw = (t) => this.draw(t)
    this.player = this.options.clock?.seat(this.trace, draw) ?? new Player(this.trace, draw, this.calm)
    this.lens = new Lens(this.source, { layer: 0, head: null, sink: false }, () => this.redraw())
  }

  reset() {
    const { paper, scratch, answer, candidates, timeline } = this
    for (const part of this.part ? [scratch, answer, timeline] : [paper, scratch, answer, candidates, timeline])
      part.reset()
  }

  /** Follows a run that is going on; plays one that is over (from `moment.at`, still, when given). */
  async open(run, moment = {}) {
    this.stopEvents?.()
    this.blank()
    this.reset()
    this.run = run
    this.connection = 'live'
    this.source = this.options.source ?? new ServiceSource(this.options.base ?? '', run)
    this.redraw()
    const { trace } = this
    this.summary = await this.source.summary().catch(() => null)
    if (this.closed || trace !== this.trace) return
    this.kind = this.summary?.recorded ? 'recorded' : 'measured'
    const over = this.summary?.state === 'finished' || this.summary?.recorded
    if (!over) this.player.follow()
    this.stopEvents = this.source.events(
      0,
      (events) => this.take(trace, events, moment, over),
      () => {},
      (state) => this.heard(state),
    )
    this.actions.draw()
  }

  take(trace, events, moment, over) {
    if (this.closed || trace !== this.trace) return
    for (const event of events) {
      trace.push(event)
      if (event.type === 'queued' && !over && !this.part && !this.options.source) this.engine.watch()
      if (event.type === 'started') this.begin(event, moment)
      if (event.type === 'finished') this.finish(moment, over)
    }
    if (!over) this.player.present()
  }

  begin({ facts, settings }, { layer, head }) {
    const lens = this.summary?.lens ??
      this.known(settings.prompt)?.lens ?? { layer: Math.round((facts.layers - 1) * 0.75), head: null }
    const asked =
      layer === undefined || layer === null
        ? lens
        : { layer: Number(layer), head: head === undefined || head === null ? null : Number(head) }
    this.lens.source = this.source
    this.lens.choose({
      layer: Math.min(facts.layers - 1, asked.layer),
      head: asked.head === null ? null : Math.min(facts.heads - 1, asked.head),
    })
    this.reset()
    this.controls.fillLens()
    this.actions.draw()
    if (asked === lens && !this.summary?.lens && !this.known(settings.prompt)?.lens) this.learnLens(this.trace)
  }

  /** A run's summary names the head to look with once the engine has it; a choice made meanwhile stays. */
  async learnLens(trace) {
    const { layer, head } = this.lens.choice
    const summary = await this.source.summary().catch(() => null)
    const untouched = this.lens.choice.layer === layer && this.lens.choice.head === head
    if (this.closed || trace !== this.trace || !summary?.lens || !untouched) return
    this.lens.choose(summary.lens)
    this.controls.fillLens()
    this.redraw()
  }

  /** The example, or the variant of one, that asks `prompt`; a variant is looked at as its example is. */
  known = (prompt) => {
    for (const each of this.options.examples ?? [])
      for (const form of [each, ...(each.variants ?? [])])
        if (form.settings.prompt === prompt) return { lens: each.lens, ...form }
    return undefined
  }

  finish({ at }, over) {
    this.player.chooseSpeed()
    this.actions.draw()
    if (!over) {
      this.player.arrive()
      return
    }
    if (at !== undefined && at !== null) this.player.seek(Number(at))
    else this.player.play()
  }

  heard(state) {
    if (state === this.connection) return
    this.connection = state
    if (state === 'refused' && !this.options.source && !this.part) this.compose.open()
    this.actions.draw()
    this.redraw()
  }

  /** The token a column stands for, visibly. */
  columnText(position) {
    const { trace } = this
    const token = position < trace.prompt ? trace.started.prompt[position] : trace.words[position - trace.prompt]?.token
    return token ? visible(token.text) : ''
  }

  /** Where the word on show looked: {row, looks}; of several drawings in one frame only the first works it out. */
  looks(moment) {
    if (moment.looked) return moment.looked
    const word = this.view.word >= 0 && this.view.word < moment.words ? this.view.word : moment.focus
    const row = this.trace.prompt + word - 1
    moment.looked = { word, row, looks: word >= 0 ? this.lens.looks(row) : [] }
    return moment.looked
  }

  /** Where the reader is, for an address: the moment once the run is over, and the lens once it has begun. */
  place() {
    const { run, trace, player, lens } = this
    const { layer, head } = lens.choice
    return {
      ...(run ? { run } : {}),
      ...(trace.finished ? { at: Math.ceil(player.t * 1e6) / 1e6 } : {}),
      ...(trace.started ? { layer, ...(head === null ? {} : { head }) } : {}),
    }
  }

  /** Whether the run's end is known: then the whole answer is, too. */
  get over() {
    return Boolean(this.trace.finished)
  }

  get running() {
    return Boolean(this.run) && !this.trace.finished && this.kind !== 'recorded' && this.connection !== 'refused'
  }

  redraw() {
    this.player.draw()
  }

  draw(t) {
    if (this.closed || !this.u) return
    const moment = momentAt(this.trace, t, this.player.following)
    for (const part of this.drawings) part.draw(moment)
    this.equivalent.draw(moment)
  }

  resize() {
    const { root } = this.parts
    const width = this.element.clientWidth
    if (!width) return
    const top = this.element.getBoundingClientRect().top + scrollY
    const height = this.options.height ?? innerHeight - Math.min(top, 120)
    this.small = this.part || width <= PHONE
    this.u = this.part ? partUnitOf(width) : unitOf(width, height)
    this.theme = themeOf(this.element, this.options.theme)
    root.style.setProperty('--u', `${this.u}px`)
    root.style.setProperty('--h', `${height}px`)
    root.dataset.theme = this.theme
    root.dataset.layout = this.part ? 'part' : this.small ? 'phone' : 'desk'
    this.palette = paletteOf(root)
    this.layout = (this.layout ?? 0) + 1
    if (!this.part) {
      this.rail.resize()
      this.links.resize(this.rail)
    }
    this.redraw()
  }

  update(options) {
    const before = this.options
    this.options = { ...before, ...options }
    this.errors = this.options.errors
    if (options.theme !== before.theme) this.resize()
    // The page repeats the run it last knew; only a run that is new to it, too, takes the desk.
    if (options.run && options.run !== before.run && options.run !== this.run)
      this.open(options.run, options.moment ?? {})
    this.actions.draw()
  }

  close() {
    this.closed = true
    this.transport.close()
    this.stopEvents?.()
    this.player.close()
    this.lens.close()
    this.controls.close()
    this.compose.close()
    this.engine.close()
    this.equivalent.close()
    this.resizes?.disconnect()
    removeEventListener('resize', this.onWindow)
    document.fonts.removeEventListener('loadingdone', this.onWindow)
    this.parts.root.remove()
  }
}
