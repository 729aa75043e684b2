/** What differs between two runs, in words and in a table; every number says whether it was measured here or recorded. */
import { el, fill, tag } from '../../scene/dom.js'
import { time } from '../../scene/draw/headline.js'
import { bytes, number } from '../../scene/text.js'
import { differing, figuresOf } from '../shared/figures.js'

/** Below this factor the words say "about as long": a difference of times may be chance, one of bytes is not. */
const SAME = { ttft: 1.1, tpot: 1.1, notes: 1.005 }
const ABNORMAL = ['stopped', 'timeout', 'out_of_memory', 'error']
/** Rows of numbers: how each is written, and whether it is counted or worked out. */
const NUMBERS = {
  ttft: [time], tpot: [time], itl: [time], prompt: [number], answer: [number], notes: [bytes], note: [bytes, 'computed'],
}

export class Versus {
  constructor(words, options) {
    this.words = words
    this.options = options
    this.told = el('ul', { class: 'told', 'data-told': '', 'aria-live': 'polite' })
    this.cautions = el('ul', { class: 'cautions' })
    this.table = el('table')
    this.root = el('div', {}, this.told, this.cautions, el('div', { class: 'wide' }, this.table))
  }

  /** Anew when a run begins or ends, or another one is chosen. */
  draw(one, two) {
    const of = (side) => [side.run, Boolean(side.trace.started), Boolean(side.trace.finished), side.kind, side.connection, side.title]
    const key = [one, two].flatMap(of).join()
    if (key === this.key) return
    this.key = key
    const runs = [one, two].map((side) => this.read(side))
    const [a, b] = runs
    if (a.name === b.name) runs.forEach((run) => { run.name = run.letter })
    this.told.replaceChildren(...this.sentences(a, b).map(([name, text]) => el('li', { 'data-said': name }, text)))
    this.cautions.replaceChildren(...this.warnings(a, b).map(([name, text]) => el('li', { 'data-caution': name }, text)))
    this.table.replaceChildren(this.header(a, b), this.body(a, b))
  }

  read({ letter, trace, kind, connection, title }) {
    const found = figuresOf(trace)
    const exam = found && this.exam(found.settings.prompt)
    const right = exam?.right.length ? exam.right.some((answer) => found.text.includes(answer)) : null
    return { letter, kind, connection, title, over: Boolean(trace.finished), found, right, name: this.words.names[exam?.id] ?? letter }
  }

  /** The exam of ours that asks `prompt`: what the sentences call a run, and whether its answer is right. */
  exam(prompt) {
    return this.options.examples.flatMap((example) => [example, ...example.variants]).find((form) => form.settings.prompt === prompt)
  }

  sentences(a, b) {
    const { say } = this.words
    const unfinished = [a, b].filter((run) => !run.over)
    if (unfinished.length)
      return unfinished.map((run) => ['waiting', sentence(say[run.connection === 'live' ? 'waiting' : run.connection], { one: run.name })])
    const broken = [a, b].filter((run) => !run.found || ABNORMAL.includes(run.found.reason)).map((run) => ['broken', this.broken(run)])
    if (!a.found || !b.found) return broken
    const told = [...broken, this.compare('wait', 'ttft', time, a, b), this.compare('each', 'tpot', time, a, b),
      this.compare('room', 'notes', bytes, a, b), this.texts(a, b),
      ...[a, b].filter((run) => run.right !== null && run.found.text).map((run) => ['right', sentence(say[run.right ? 'right' : 'wrong'], { one: run.name })])]
    return told.filter(Boolean)
  }

  broken({ name, found }) {
    const { say, head } = this.words
    if (!found) return sentence(say.never, { one: name })
    const why = found.code ? fill(this.options.errors[found.code] ?? '', found.values) : head[found.reason]
    return sentence(say.broken, { one: name, why })
  }

  /** How many times as much one has as the other; nothing where one has no such value. */
  compare(said, figure, write, a, b) {
    const { say } = this.words
    const [more, less] = (b.found[figure] ?? 0) >= (a.found[figure] ?? 0) ? [b, a] : [a, b]
    const values = [more, less].map((run) => run.found[figure])
    const missing = [a, b].find((run) => run.found[figure] === null)
    if (missing) return figure === 'notes' ? null : [said, sentence(say[`${said}_none`], { one: missing.name })]
    const ratio = values[0] / values[1]
    if (ratio < SAME[figure]) return [said, fill(say[`${said}_same`], { a: write(a.found[figure]), b: write(b.found[figure]) })]
    const gaps = { more: more.name, less: less.name, ratio: times(ratio), a: write(values[0]), b: write(values[1]) }
    return [said, sentence(say[`${said}_more`], gaps)]
  }

  texts({ found: a }, { found: b }) {
    const { say } = this.words
    if (!a.text && !b.text) return null
    if (a.text === b.text) return ['text', say.text_same]
    if (a.facts.weights_sha256 !== b.facts.weights_sha256) return ['text', say.text_differs]
    const n = a.ids.findIndex((id, i) => id !== b.ids[i])
    return ['text', n > 0 ? fill(say.text_from, { n: n + 1 }) : say.text_differs]
  }

  /** What makes the comparison less than fair, or needs to be known. */
  warnings(a, b) {
    if (!a.found || !b.found) return []
    const { caution } = this.words
    const [one, two] = [a.found, b.found]
    const told = []
    const differ = (name, value) => value(one) !== value(two) && told.push([name, fill(caution[name], { a: value(one), b: value(two) })])
    differ('machine', ({ facts }) => this.machine(facts))
    differ('dtype', ({ facts }) => facts.dtype)
    differ('model', ({ facts }) => this.model(facts))
    if (a.kind !== b.kind) told.push(['kind', fill(caution.kind, { one: (a.kind === 'recorded' ? a : b).letter, other: (a.kind === 'recorded' ? b : a).letter })])
    for (const run of [a, b]) {
      if (run.found.together > 1) told.push(['together', fill(caution.together, { one: run.letter, n: run.found.together - 1 })])
      if (run.found.cold) told.push(['cold', fill(caution.cold, { one: run.letter })])
      if (run.found.taken) told.push(['taken', fill(caution.taken, { one: run.letter, n: run.found.taken })])
    }
    return told
  }

  machine({ device, device_name: name, threads }) {
    return fill(this.words.table[device === 'cpu' ? 'cpu' : 'device'], { name: name || device, threads })
  }

  model({ model }) {
    return this.options.models[model]?.title ?? model
  }

  header(a, b) {
    const { table } = this.words
    return el('thead', {}, el('tr', {}, el('th', {}),
      ...[a, b].map((run) => el('th', { scope: 'col' }, el('b', {}, run.letter), ` ${run.title}`)),
      el('th', { scope: 'col' }, table.ratio)))
  }

  body(a, b) {
    const { words } = this
    const text = (name, value, rtl) => this.row(name, words.table[name], [a, b].map((run) => [value(run), rtl]))
    const rows = Object.keys(NUMBERS).map((name) => this.numbers(name, a, b))
    rows.push(
      text('answer_text', (run) => run.over && run.found?.text, 'auto'),
      text('ended', ({ found }) => found && (words.rail[found.reason] ?? found.reason)),
      text('model', ({ found }) => found && this.model(found.facts)),
      text('dtype', ({ found }) => found?.facts.dtype),
      text('machine', ({ found }) => found && this.machine(found.facts)),
    )
    if (a.found && b.found)
      for (const name of differing(a.found.settings, b.found.settings))
        if (name !== 'model') rows.push(this.row(`set_${name}`, this.setting(name), [a, b].map((run) => [written(run.found.settings[name]), 'auto'])))
    return el('tbody', {}, ...rows)
  }

  setting(name) {
    const { words } = this
    return words.settings[name] ?? words.compose[name] ?? name
  }

  numbers(name, a, b) {
    const { words } = this
    const [write, kind] = NUMBERS[name]
    // What a run that goes on has come to so far is nobody's final number.
    const values = [a, b].map((run) => (run.over || name === 'prompt' ? run.found?.[name] : null) ?? null)
    const cells = values.map((value, i) => {
      const run = [a, b][i]
      if (value === null) return el('td', { 'data-value': '' }, run.over ? words.table.none : '…')
      return el('td', { 'data-value': value }, write(value), ' ', tag(words, kind ?? run.kind, true))
    })
    const known = values.every((value) => value)
    return el('tr', { 'data-row': name }, el('th', { scope: 'row' }, words.table[name]), ...cells,
      el('td', {}, known ? `× ${times(values[1] / values[0])}` : ''))
  }

  row(name, label, cells) {
    return el('tr', { 'data-row': name, class: 'text' }, el('th', { scope: 'row' }, label),
      ...cells.map(([value, dir]) => el('td', { dir, 'data-value': value || '' }, el('div', {}, value || this.words.table.none))), el('td', {}))
  }
}

/** A factor as a person says it. */
const times = (ratio) => number(ratio, ratio < 10 ? 1 : 0)

/** A setting's value as text. */
function written(value) {
  if (value === null || value === undefined) return ''
  if (Array.isArray(value)) return value.map((one) => (Array.isArray(one) ? one.map((n) => n + 1).join('·') : JSON.stringify(one))).join(', ')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** A sentence whose first gap may be a name: it begins with a capital letter. */
function sentence(template, values) {
  const text = fill(template, values)
  return text.charAt(0).toUpperCase() + text.slice(1)
}
