/**
 * Old notes do not change: the engine takes a checksum of every column after every step of a fresh run, and here each
 * is compared with the first one that was taken of its column. A column that changed would be drawn as a warning.
 */
import { owner } from '../../scene/compose/compose.js'
import { button, el, fill, setText } from '../../scene/dom.js'
import { ServiceSource, ask } from '../../scene/source.js'
import { number, visible } from '../../scene/text.js'
import { NotesApi } from './api.js'
import { lookOf, sized, standing } from './columns.js'

const WORDS = 16 // the answer's length in a proof
const WORDS_ABOVE = 74 // pixels
const BOUND = 32 * 2 ** 20 // bytes of notes that are checked (engine/notes.py)

export class Proof {
  /** `desk`: {words, base, lang, errors, trace, examples, onOpen(run)}; `kept` as `kept()` told it. */
  constructor(desk, kept) {
    this.desk = desk
    const { words } = desk
    this.begin = button(words.proof.begin, () => this.prove(), { class: 'pill main', 'data-do': 'prove' })
    this.again = button(words.proof.again, () => this.check(), { class: 'pill', 'data-do': 'check', hidden: true })
    this.open = button(words.proof.open, () => desk.onOpen(this.run), { class: 'pill', 'data-do': 'open-proof', hidden: true })
    this.verdict = el('p', { class: 'verdict', 'data-proof': true, 'aria-live': 'polite' })
    this.canvas = el('canvas', { hidden: true, role: 'img', 'aria-label': words.proof.label })
    this.told = el('p', { class: 'told', 'data-sum': true })
    this.legend = el('p', { class: 'caption', hidden: true }, el('i', { class: 'swatch first' }), words.proof.first, el('i', { class: 'swatch same' }), words.proof.same, el('i', { class: 'swatch changed' }), words.proof.changed)
    this.root = el('div', { class: 'proof' }, el('p', { class: 'row' }, this.begin, this.again, this.open), this.verdict, el('div', { class: 'wide' }, this.canvas), this.told, this.legend)
    this.canvas.addEventListener('pointermove', (event) => this.point(event))
    this.canvas.addEventListener('click', (event) => this.point(event))
    if (!kept) return
    Object.assign(this, kept, { api: new NotesApi(desk.base, kept.run, desk.lang) })
    this.open.hidden = this.again.hidden = false
  }

  /** What is left of a proof that is over when the page is built anew. */
  kept() {
    return this.open.hidden ? undefined : { run: this.run, checks: this.checks, tokens: this.tokens, prompt: this.prompt }
  }

  close() {
    this.closed = true
    this.unfollow?.()
  }

  /** This run's own paper where its notes are few enough to be read again after every step, else a short one. */
  settings() {
    const { trace, examples } = this.desk
    const short = (examples.find(({ id }) => id === 'short') ?? examples[0]).settings
    const own = { ...trace.started.settings, max_new_tokens: WORDS, fork: null }
    const fits = (trace.prompt + WORDS) * trace.facts.layers * trace.noteBytes <= BOUND
    return fits ? own : { ...short, model: own.model, mode: own.mode, max_new_tokens: WORDS }
  }

  async prove() {
    const { desk } = this
    this.begin.disabled = this.open.hidden = this.again.hidden = true
    Object.assign(this, { checks: [], tokens: [], watching: null, finished: null, run: null })
    setText(this.told, '')
    this.told.dataset.sum = ''
    setText(this.verdict, desk.words.proof.running)
    try {
      const { id } = await ask(desk.base, 'runs', desk.lang, { ...this.settings(), owner: owner(), keep: true })
      this.run = id
      this.api = new NotesApi(desk.base, id, desk.lang)
      await this.follow(id)
    } catch (problem) {
      if (!this.closed) setText(this.verdict, problem.message || desk.words.trouble)
    }
    this.begin.disabled = false
  }

  follow(id) {
    return new Promise((resolve, reject) => {
      this.unfollow = new ServiceSource(this.desk.base, id).events(0, (events) => this.take(events).catch(reject), resolve,
        (state) => state === 'refused' && reject({}))
    }).then(() => this.over())
  }

  async take(events) {
    for (const event of events) {
      if (event.type === 'started') Object.assign(this, { tokens: [...event.prompt], prompt: event.prompt.length })
      if (event.type === 'chose') this.tokens.push(event.token)
      if (event.type === 'finished') this.finished = event
    }
    const types = new Set(events.map((event) => event.type))
    // Asked for while the paper is read, the first sums are taken right after it; too early is asked again.
    if (types.has('started') || (types.has('prefilled') && this.early)) await this.watch()
    if (types.has('decoded') && !this.finished) await this.fetch()
  }

  async watch() {
    this.early = false
    this.watching = this.api.watch().catch((problem) => {
      if (problem.code !== 'no_notes' && problem.code !== 'unfinished') throw problem
      this.early = true
    })
    await this.watching
  }

  /** The newest checks; one question at a time. */
  async fetch() {
    if (this.fetching) return
    this.fetching = true
    try {
      await this.watching
      this.checks.push(...(await this.api.checks(this.checks.length)))
      if (!this.closed) this.draw()
    } finally {
      this.fetching = false
    }
  }

  async over() {
    const { errors, words } = this.desk
    if (this.closed) return
    const { code, values } = this.finished ?? {}
    if (code && errors[code]) throw { message: fill(words.state.failed, { why: fill(errors[code], Object.fromEntries(values ?? [])) }) }
    await this.check()
    this.open.hidden = this.again.hidden = false
  }

  /** All sums once more, now: whatever has been looked at or run since. */
  async check() {
    this.again.disabled = true
    try {
      await this.api.watch()
      while (this.fetching) await new Promise((resolve) => setTimeout(resolve, 30))
      await this.fetch()
    } catch (problem) {
      if (!this.closed) setText(this.verdict, problem.message || this.desk.words.trouble)
    }
    this.again.disabled = false
  }

  /** Per check and column: 'first' when it was new, 'same', or 'changed'. */
  compared() {
    const first = []
    return this.checks.map(({ sums }) => sums.map((sum, column) => {
      if (first[column] === undefined) first[column] = sum
      else return sum === first[column] ? 'same' : 'changed'
      return 'first'
    }))
  }

  draw() {
    const { words } = this.desk
    if (!this.checks?.length) return
    const rows = this.compared()
    const count = (kind) => rows.reduce((sum, row) => sum + row.filter((one) => one === kind).length, 0)
    const [same, changed] = [count('same'), count('changed')]
    const columns = Math.max(0, ...rows.map((row) => row.length))
    const gaps = this.checks.filter((check, index) => index && check.length > this.checks[index - 1].length + 1).length
    Object.assign(this.verdict.dataset, { run: this.run, checks: rows.length, columns, same, changed, gaps, firsts: this.checks.at(-1)?.sums.join(' ') ?? '', lengths: this.checks.map((check) => check.length).join(' ') })
    const seconds = this.checks.reduce((sum, check) => sum + check.seconds, 0) / Math.max(1, rows.length)
    const told = { checks: number(rows.length), same: number(same), changed: number(changed), columns: number(columns), time: `${number(1000 * seconds, 1)} ms` }
    setText(this.verdict, [fill(changed ? words.proof.broken : same ? words.proof.holds : words.proof.running, told), gaps ? words.proof.gaps : ''].join(' '))
    this.verdict.classList.toggle('trouble', changed > 0)
    if (!this.told.dataset.sum) setText(this.told, words.proof.point)
    this.paint(rows, columns)
  }

  paint(rows, columns) {
    const width = this.root.clientWidth
    if (!rows.length || !width) return
    this.canvas.hidden = this.legend.hidden = false
    const look = lookOf(this.root)
    const unit = look.size / 16
    const gutter = Math.round(84 * unit)
    const cell = Math.max(3, Math.min(16 * unit, (width - gutter - 4) / columns))
    const line = unit * Math.max(4, Math.min(14, 280 / rows.length))
    const top = cell >= 13 * unit ? Math.round(WORDS_ABOVE * unit) : 0
    const context = sized(this.canvas, gutter + cell * columns + 2, top + line * rows.length + 2)
    this.shape = { gutter, cell, line, top }
    if (top) this.above(context, look, columns)
    const gap = cell > 5 ? 1.5 : 0.5
    context.textAlign = 'right'
    context.textBaseline = 'middle'
    context.font = `400 ${0.74 * look.size}px ${look.font}`
    rows.forEach((row, index) => {
      row.forEach((kind, column) => {
        context.fillStyle = kind === 'changed' ? look.stop : kind === 'first' ? look.decode : look.ghost
        const grow = kind === 'changed' ? 1 : 0
        context.fillRect(gutter + column * cell - grow, top + index * line - grow, cell - gap + 2 * grow, line - gap + 2 * grow)
      })
      context.fillStyle = look.pencil
      if (line >= 9 * unit || index % 2 === 0) context.fillText(this.name(index), gutter - 7, top + index * line + line / 2)
    })
    this.canvas.dataset.rows = rows.length
  }

  /** The columns' words, where there is room for them. */
  above(context, look, columns) {
    const { gutter, cell, top } = this.shape
    context.font = `400 ${0.82 * look.size}px ${look.serif}`
    context.textBaseline = 'middle'
    for (let column = 0; column < columns; column++) {
      const token = this.tokens[column]
      context.fillStyle = token?.special ? look.special : column >= this.prompt ? look.decode : look.pencil
      standing(context, Array.from(visible(token?.text ?? '')).slice(0, 12).join(''), gutter + (column + 0.5) * cell, top - 4, top - 6, look.size)
    }
  }

  name(index) {
    const { words } = this.desk
    const { asked, length } = this.checks[index]
    if (asked && index) return words.proof.now
    return length > this.prompt ? fill(words.proof.step, { n: length - this.prompt }) : words.proof.start
  }

  point(event) {
    if (!this.shape) return
    const box = this.canvas.getBoundingClientRect()
    const column = Math.floor((event.clientX - box.left - this.shape.gutter) / this.shape.cell)
    const index = Math.floor((event.clientY - box.top - this.shape.top) / this.shape.line)
    const sum = this.checks[index]?.sums[column]
    if (sum === undefined) return
    const kind = this.compared()[index][column]
    const { words } = this.desk
    Object.assign(this.told.dataset, { column, check: index, sum, kind })
    setText(this.told, fill(words.proof[`cell_${kind}`], { word: visible(this.tokens[column]?.text ?? ''), n: column + 1, when: this.name(index), sum }))
  }
}
