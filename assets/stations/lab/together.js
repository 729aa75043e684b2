/**
 * Real runs that sit at the same time, group after group: who waits for whom is drawn on one clock (`created` + `at`).
 *
 * In place of `Both` on a remedy's page. `groups`: [{name, runs: names of `Lab.runs()`, after: words that the first has
 * written before the others come; 0: all at once}]. [data-both] is idle, running, finished or failed, [data-sat=NAME] names
 * each run, [data-live=GROUP] holds its picture.
 */
import { owner } from '../../scene/compose/compose.js'
import { el, fill, setText, tag } from '../../scene/dom.js'
import { ask, ServiceSource } from '../../scene/source.js'
import { duration } from '../../scene/text.js'
import { Trace } from '../../scene/trace/trace.js'
import { Desk } from './desk.js'
import { figuresOf } from '../shared/figures.js'
import { Both } from './both.js'

const time = (seconds) => duration(seconds).join(' ')

export class Together extends Both {
  constructor(lab, groups) {
    super(lab)
    this.groups = groups
    setText(this.go, lab.words.both.sit)
    this.desks = Object.fromEntries(groups.map(({ name }) => [name, new Desk({ words: lab.words.desk, label: lab.words.both[name], chart: lab.chart('together') })]))
    this.lives = el('div', { class: 'lives' }, ...groups.map(({ name }) => el('div', { 'data-live': name, hidden: true }, el('h3', {}, lab.words.both[name], ' ', tag(lab.scene, 'measured', true)), this.desks[name].root)))
    this.root.insertBefore(this.lives, this.table)
    this.leaves = []
    this.clocks = { ...this.sat }
  }

  close() {
    this.closed = true
    for (const leave of this.leaves) leave()
    for (const desk of Object.values(this.desks)) desk.close()
  }

  async run() {
    const { lab } = this
    this.running = this.go.disabled = true
    Object.assign(this, { sat: {}, clocks: {} })
    this.told.dataset.both = 'running'
    delete this.told.dataset.same
    try {
      for (const group of this.groups) {
        setText(this.told, fill(lab.common.both.running, { name: lab.words.both[group.name] }))
        await this.sit(group)
        if (this.closed) return
        this.draw()
      }
    } catch ({ message }) {
      this.told.dataset.both = 'failed'
      setText(this.told, message || lab.unreachable)
    }
    this.running = this.go.disabled = false
  }

  /** All of a group, started one after another, each followed to its end. */
  async sit({ runs, after }) {
    const [first, ...others] = runs
    let enough
    const written = new Promise((resolve) => { enough = resolve })
    const over = [this.follow(first, await this.press(first), (events) => events.filter(({ type }) => type === 'chose').length >= after && enough())]
    if (after) await Promise.race([written, over[0]]) // it may be over before, and may have failed
    for (const name of others) over.push(this.follow(name, await this.press(name)))
    await Promise.all(over)
  }

  async press(name) {
    const { lab } = this
    return (await ask(lab.base, 'runs', lab.lang, { ...this.runs[name], model: this.model, owner: owner(), keep: true })).id
  }

  /** To the run's end; what there is of it so far is drawn as it comes. */
  async follow(name, id, onMore = () => {}) {
    const { lab } = this
    const { created } = await ask(lab.base, `runs/${id}`, lab.lang)
    const [events, trace] = [[], new Trace()]
    const clock = (this.clocks[name] = { pressed: Date.parse(created) / 1000, chunks: [], times: [] })
    await new Promise((resolve, reject) => {
      this.leaves.push(new ServiceSource(lab.base, id).events(0, (more) => {
        events.push(...more)
        for (const event of more) trace.push(event)
        Object.assign(clock, { chunks: trace.passes.map(({ a, b, start, stop }) => [a, b, start, stop]), times: trace.words.map(({ at }) => at) })
        this.lanes()
        onMore(events)
      }, resolve, (state) => state === 'refused' && reject({})))
    })
    const finished = events.at(-1)
    if (finished.code || !trace.words.length) throw { message: finished.code ? fill(lab.errors[finished.code] ?? '', Object.fromEntries(finished.values)) : '' }
    this.sat[name] = { id, ...figuresOf(trace), ...clock }
  }

  /** Each group on its own clock as far as it got, all to one scale. */
  lanes() {
    const groups = this.groups.map((group) => ({ ...group, people: this.people(group.runs) })).filter(({ people }) => people.some(({ words, chunks }) => words.length + chunks.length))
    const end = Math.max(0, ...groups.flatMap(({ people }) => people.map(lastOf)))
    for (const { name } of this.groups) this.lives.querySelector(`[data-live=${name}]`).hidden = !groups.some((group) => group.name === name)
    for (const { name, people, after } of groups) {
      const now = Math.max(...people.map(lastOf))
      const gap = after && people[1]?.words.length ? Desk.gap(people[0].words, people[1].arrived, people[1].words[0]) : null
      this.desks[name].show(people, { end })
      this.desks[name].chart.show({}, [...people.flatMap((one) => spansOf(one, now)), ...(gap ? [{ lane: people[0].label, kind: 'rest', start: gap[0], stop: gap[1] }] : [])].map((row) => ({ ...row, end })))
    }
  }

  draw() {
    const { lab, sat } = this
    const { common, words, scene } = lab
    this.lanes()
    const names = this.groups.flatMap(({ runs }) => runs).filter((name) => sat[name])
    if (!names.length) return this.table.replaceChildren()
    if (names.length === Object.keys(this.runs).length) {
      const same = this.groups.slice(1).every(({ runs }) => runs.every((name, i) => sat[name].ids.join() === sat[this.groups[0].runs[i]].ids.join()))
      Object.assign(this.told.dataset, { both: 'finished', same })
      setText(this.told, words.both[same ? 'same' : 'differs'])
    }
    const cell = (value) => el('td', { 'data-value': value ?? '' }, value === null ? '–' : time(value), ' ', value === null ? '' : tag(scene, 'measured', true))
    const heads = ['ttft', 'tpot', 'gap', 'text', 'see'].map((name) => el('th', { scope: 'col' }, words.both[name] ?? common.both[name]))
    this.table.replaceChildren(el('table', { class: 'sat' }, el('thead', {}, el('tr', {}, el('th', {}), ...heads)), el('tbody', {}, ...names.map((name) => {
      const run = sat[name]
      const before = this.before(name)
      return el('tr', { 'data-sat': name, 'data-run': run.id }, el('th', { scope: 'row' }, words.runs[name]), cell(run.ttft), cell(run.tpot), cell(longest(run.times)),
        el('td', { class: 'answer', dir: 'auto' }, run.text || common.both.nothing),
        el('td', {}, this.link('exam_room', { run: run.id }, common.both.room), ...(before ? [' · ', this.link('compare', { run: before.id, beside: run.id }, words.both.beside)] : [])))
    }))))
    return undefined
  }

  /** The same person's run in the first group. */
  before(name) {
    const place = this.groups.slice(1).map(({ runs }) => runs.indexOf(name)).find((i) => i >= 0)
    return place === undefined ? null : this.sat[this.groups[0].runs[place]]
  }

  /** The runs of a group that have begun, on the clock of the one that was started first. */
  people(runs) {
    const { words } = this.lab
    const there = runs.filter((name) => this.clocks[name])
    const begin = Math.min(...there.map((name) => this.clocks[name].pressed))
    return there.map((name) => {
      const { pressed, chunks, times } = this.clocks[name]
      const [offset, letter] = [pressed - begin, 'ABCDEFGH'[runs.indexOf(name)]]
      return { name: letter, label: words.people?.[letter] ?? letter, arrived: offset, chunks: chunks.map(([a, b, ...rest]) => [a + offset, b + offset, ...rest]), words: times.map((at) => at + offset) }
    })
  }
}

const lastOf = ({ arrived, chunks, words }) => Math.max(arrived, chunks.at(-1)?.[1] ?? 0, words.at(-1) ?? 0)

/** A person's rows of the chart; who is still waiting `now` waits until then. */
function spansOf({ label: lane, arrived, chunks, words }, now) {
  const first = chunks[0]?.[0] ?? words[0] ?? now
  return [
    ...(first > arrived ? [{ lane, kind: 'wait', start: arrived, stop: first }] : []),
    ...(chunks.length > 1 ? [{ lane, kind: 'between', start: first, stop: chunks.at(-1)[1] }] : []),
    ...chunks.map(([start, stop, a, b]) => ({ lane, kind: 'read', start, stop, label: `${a + 1}–${b}` })),
    ...(words.length > 1 ? [{ lane, kind: 'write', start: words[0], stop: words.at(-1), label: String(words.length) }] : []),
    ...words.map((at, k) => ({ lane, kind: 'word', start: at, stop: at, label: String(k + 1) })),
  ]
}

const longest = (times) => (times.length > 1 ? Math.max(...times.slice(1).map((at, i) => at - times[i])) : null)
