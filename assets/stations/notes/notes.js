/**
 * The scratch paper: the KV cache of the run in the address. All notes in small (from the trace, so recordings too), one
 * head's K or V number by number (from the engine while it holds them), their bytes, who shares them, and that they stay.
 */
import { button, el, fill } from '../../scene/dom.js'
import { visible } from '../../scene/text.js'
import { Trace } from '../../scene/trace/trace.js'
import { Followed } from '../shared/followed.js'
import { NotesApi } from './api.js'
import { Ledger } from './bytes.js'
import { Columns } from './columns.js'
import { choosers, papers, zoomTools } from './controls.js'
import { sharing } from '../shared/cost.js'
import { Longer } from './longer.js'
import { Overview } from './overview.js'
import { Picture } from './picture.js'
import { Proof } from './proof.js'
import { Sharing } from './sharing.js'
import { loaded, mountStation, part, stylesheet } from '../shared/station.js'

const CSS = new URL('notes.css', import.meta.url).href
const PAUSE = 250 // milliseconds between two drawings while the model writes

export const mount = (element, options) => mountStation(element, options, (station) => new Notes(station))

class Notes {
  constructor(station) {
    this.station = station
    this.options = station.options
    this.words = station.words
    this.trace = new Trace()
    this.tokens = []
    this.columns = new Columns()
    this.at = null // seconds of the moment that was chosen; null follows the run
    const { words } = this
    this.run = new Followed(station, { take: (events) => this.take(events), over: (finished) => this.over(finished) })
    this.wrong = el('p', { class: 'trouble', role: 'alert', hidden: true })
    this.sheet = stylesheet(CSS)
    this.desk = this.makeDesk()
    this.overview = new Overview(this.desk)
    this.picture = new Picture(this.desk)
    this.ledger = new Ledger(this.desk)
    this.sharing = new Sharing(this.desk)
    this.longer = new Longer(this.desk)
    this.proof = new Proof(this.desk, this.options.kept?.proof)
    this.controls = el('div', { class: 'row options' })
    this.papers = el('div', { class: 'row' })
    this.sections = this.parts()
    this.root = el('div', { class: 'body notes-page' }, this.sheet, this.run.line, this.wrong, ...this.sections, this.ledger.strip)
    this.sizes = new ResizeObserver(() => this.draw())
    this.sizes.observe(this.overview.root)
    this.themes = new MutationObserver(() => this.draw()) // what is on canvas has to be told of light and dark
  }

  parts() {
    const { words } = this
    this.tools = zoomTools(words, this.columns, this.desk.choice, (work) => this.view(work))
    const sections = [
      part(words, 'overview', el('p', {}, words.overview.lead), this.tools, this.overview.root,
        el('h3', {}, words.picture.title), el('p', {}, words.picture.lead), this.controls, this.picture.root),
      part(words, 'bytes', el('p', {}, words.bytes.lead), this.ledger.root),
      part(words, 'sharing', el('p', {}, words.sharing.lead), this.sharing.root),
      part(words, 'proof', el('p', {}, words.proof.lead), this.proof.root),
      part(words, 'longer', el('p', {}, words.longer.lead), this.longer.root, el('h3', {}, words.try.title), el('p', {}, words.try.lead), this.papers),
    ]
    for (const section of sections) section.hidden = true
    return sections
  }

  makeDesk() {
    const { words, options, columns, trace, tokens } = this
    const base = options.base ?? ''
    const name = (position) => visible(tokens[position]?.text ?? '')
    return {
      words, trace, tokens, columns, base, scene: options.scene, errors: options.errors, lang: options.lang,
      api: new NotesApi(base, options.run, options.lang), examples: options.examples,
      short: (position) => Array.from(name(position)).slice(0, 12).join(''),
      label: (position) => (tokens[position] ? `“${name(position)}” (${position + 1})` : String(position + 1)),
      choice: { layer: 0, head: 0, kind: 'key', position: 0, dimension: 0, own: false, ...options.kept?.choice },
      recorded: () => this.station.recorded,
      length: () => this.now().columns,
      done: (layer) => this.done(layer),
      now: () => this.now(),
      time: () => this.at,
      onPlace: (place) => this.choose(place),
      onCell: (cell) => this.choose(cell),
      onHead: (head) => this.choose({ head }),
      onMoment: (at) => this.goTo(at),
      onOpen: (run) => options.onRun(run),
      onTrouble: (code) => this.offerAgain(code),
    }
  }

  close() {
    this.closed = true
    clearTimeout(this.timer)
    this.sizes.disconnect()
    this.themes.disconnect()
    this.picture.close()
    this.proof.close()
  }

  /** A change of language keeps what was chosen and what was proved. */
  kept() {
    return this.laid ? { choice: this.desk.choice, proof: this.proof.kept() } : undefined
  }

  async start() {
    await loaded(this.sheet)
    this.themes.observe(this.station.root, { attributeFilter: ['data-theme'] })
    await this.run.start()
  }

  /** The state at the chosen moment, or the newest. */
  now() {
    return this.at === null ? this.trace.last : this.trace.stateAt(this.at)
  }

  /** How many positions have their note in a layer: while the paper is read the layers differ. */
  done(layer) {
    const { columns, layers, chunk_stop: stop } = this.now()
    if (this.trace.started?.settings.notes === false) return 0 // nothing was kept of what was read
    return layer < layers ? stop : columns
  }

  take(events) {
    const { trace, tokens } = this
    for (const event of events) {
      trace.push(event)
      if (event.type === 'started') {
        tokens.push(...event.prompt)
        this.lay(event)
      }
      if (event.type === 'reused') tokens.push(...event.written.map(({ token }) => token))
      if (event.type === 'chose') tokens.push(event.token)
    }
    this.columns.total = Math.max(1, trace.prompt, trace.last.columns)
    if (!trace.finished && trace.last.phase === 'decode' && !this.seen) {
      this.seen = true
      this.picture.show()
    }
    this.timer ||= setTimeout(() => {
      this.timer = 0
      this.draw()
    }, PAUSE)
  }

  /** The paper is known: everything has its place. */
  lay(started) {
    const { facts } = started
    const { options, desk, trace } = this
    const { layer, head } = options.moment ?? {}
    const { choice } = desk
    if (!options.kept) {
      choice.layer = layer ?? facts.layers >> 1
      choice.head = Math.floor((head ?? 0) / sharing(facts).group)
      choice.position = trace.prompt - 1
      if (layer >= facts.layers) this.deny('no_layer', { layer: layer + 1, layers: facts.layers })
      else if (head >= facts.heads) this.deny('no_head', { head: head + 1, heads: facts.heads })
    }
    choice.layer = Math.min(choice.layer, facts.layers - 1)
    choice.head = Math.min(choice.head, facts.kv_heads - 1)
    for (const section of [...this.sections, this.ledger.strip]) section.hidden = false
    this.chooser = choosers(this.words, facts, choice, (change) => this.choose(change))
    this.controls.replaceChildren(...this.chooser.nodes)
    this.papers.replaceChildren(...papers(this.words, options.examples, started, (settings) => this.run.again(settings, this.papers)))
    this.laid = true
    this.sharing.draw()
    this.longer.begin()
  }

  /** An address that names a layer or head that is not there: said, and the page goes on with one that is. */
  deny(code, values) {
    this.wrong.textContent = fill(this.options.errors[code], values)
    this.wrong.dataset.code = code
    this.wrong.hidden = false
  }

  async over(finished) {
    this.run.ending(finished, this.trace.last.columns > 0)
    if (!this.laid) return
    const { at } = this.options.moment ?? {}
    if (Number.isFinite(at)) this.at = Math.min(at, this.trace.end)
    this.picture.forget()
    this.choose({})
    if (this.run.summary?.kept) this.ledger.tell(await this.desk.api.taken().catch(() => null))
  }

  /** The numbers are gone: the same paper once more, here. */
  offerAgain(code) {
    if (code !== 'notes_not_kept' || this.picture.trouble.querySelector('button')) return
    const { started } = this.run
    this.picture.trouble.append(' ', button(this.words.state.again, () => this.run.again(started.settings, this.picture.trouble), { class: 'pill main', 'data-do': 'again' }))
  }

  view(work) {
    work()
    this.draw()
  }

  goTo(at) {
    this.at = at >= this.ledger.moments().at(-1).at && !this.trace.finished ? null : at
    this.remember()
    this.draw()
  }

  choose(change) {
    const { desk, columns } = this
    Object.assign(desk.choice, change)
    if (!this.laid) return
    if ('layer' in change || 'head' in change) this.remember()
    if ('position' in change) columns.reveal(change.position)
    if (Object.keys(change).length) this.wrong.hidden = true
    const { summary } = this.run
    if (summary && !summary.kept) this.picture.fail({ code: 'notes_not_kept', message: this.options.errors.notes_not_kept })
    else this.picture.show()
    this.sharing.draw()
    this.draw()
  }

  /** The address: this moment, this layer, and a query head that reads the notes on show. */
  remember() {
    const { desk, options, trace } = this
    const { group } = sharing(trace.facts)
    const { layer, head } = desk.choice
    const before = options.moment?.head
    const query = Number.isInteger(before) && Math.floor(before / group) === head ? before : head * group
    const at = this.at ?? options.moment?.at
    options.moment = { at, layer, head: query }
    options.onMoment({ run: options.run, ...options.moment })
  }

  draw() {
    if (this.closed || !this.laid) return
    const { desk, columns } = this
    columns.width = Math.floor(this.overview.root.clientWidth)
    columns.unit = parseFloat(getComputedStyle(this.overview.root).fontSize) / 16
    this.tools.hidden = columns.named && !columns.view
    this.chooser.show(desk.choice)
    this.overview.draw()
    this.picture.draw()
    this.ledger.draw()
    this.proof.draw()
  }
}
