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
    this.desks = Object.fromEntries(groups.map(({ name }) => [name, new Desk({ words: lab.words.desk, label: lab.words.both[name] })]))
    this.lives = el('div', { class: 'lives' }, ...groups.map(({ name }) => el('div', { 'data-live': name, hidden: true }, el('h3', {}, lab.words.both[name], ' ', tag(lab.scene, 'measured', true)), this.desks[name].root)))
    this.root.insertBefore(this.lives, this.table)
    this.leaves = []
  }

  close() {
    this.closed = true
    for (const leave of this.leaves) leave()
    for (const desk of Object.values(this.desks)) desk.close()
  }

  async run() {
    const { lab } = this
    this.running = this.go.disabled = true
    this.sat = {}
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

  async follow(name, id, onMore = () => {}) {
    const { lab } = this
    const events = []
    await new Promise((resolve, reject) => {
      this.leaves.push(new ServiceSource(lab.base, id).events(0, (more) => {
        events.push(...more)
        onMore(events)
      }, resolve, (state) => state === 'refused' && reject({})))
    })
    const finished = events.at(-1)
    const trace = new Trace()
    for (const event of events) trace.push(event)
    if (finished.code || !trace.words.length) throw { message: finished.code ? fill(lab.errors[finished.code] ?? '', Object.fromEntries(finished.values)) : '' }
    const { created } = await ask(lab.base, `runs/${id}`, lab.lang)
    this.sat[name] = {
      id, pressed: Date.parse(created) / 1000, ...figuresOf(trace),
      chunks: trace.passes.map(({ a, b, start, stop }) => [a, b, start, stop]), times: trace.words.map(({ at }) => at),
    }
  }

  draw() {
    const { lab, sat } = this
    const { common, words, scene } = lab
    const end = Math.max(0, ...this.groups.flatMap(({ runs }) => this.people(runs).map((one) => one.words.at(-1)))) // one scale for all
    for (const group of this.groups) {
      const there = group.runs.every((run) => sat[run])
      this.lives.querySelector(`[data-live=${group.name}]`).hidden = !there
      if (there) this.live(group, end)
    }
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

  /** The runs of a group that are over, on the clock of the one that was started first. */
  people(runs) {
    const { words } = this.lab
    const over = runs.filter((name) => this.sat[name])
    const begin = Math.min(...over.map((name) => this.sat[name].pressed))
    return over.map((name) => {
      const { pressed, chunks, times } = this.sat[name]
      const [offset, letter] = [pressed - begin, 'ABCDEFGH'[runs.indexOf(name)]]
      return { name: letter, label: words.people?.[letter] ?? letter, arrived: offset, chunks: chunks.map(([a, b, ...rest]) => [a + offset, b + offset, ...rest]), words: times.map((at) => at + offset) }
    })
  }

  live({ name, runs, after }, end) {
    const people = this.people(runs)
    const gap = after ? Desk.gap(people[0].words, people[1].arrived, people[1].words[0]) : null
    if (gap) people[0].gap = [...gap, time(gap[1] - gap[0])]
    this.desks[name].show(people, { end })
  }
}

const longest = (times) => (times.length > 1 ? Math.max(...times.slice(1).map((at, i) => at - times[i])) : null)
