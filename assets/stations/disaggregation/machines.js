/**
 * Two arrangements of machines at one moment of the simulation, and over time: what is read, who writes, which pens rest,
 * which notes travel. Everything drawn is a span that the simulation told (`picture` of engine/disaggregation/told.py).
 *
 * The root is [data-stage] with data-at (simulated seconds), data-until and data-person. Each [data-arrangement=NAME] has
 * rows [data-machine=NAME] with data-reads (a person's number or empty), data-writes and data-waits (how many), data-rests.
 */
import { button, el, fill, setText, svg, tag } from '../../scene/dom.js'
import { number } from '../../scene/text.js'
import { share, time } from './simulation.js'

const LEAST = 12 // seconds that the whole takes to play, at least
const MOST = 30
const FRAME = 66 // milliseconds between two pictures
const CHIPS = 10
const WIDE = 1000 // units of a lane
const HIGH = 30
const APART = 2.5 // units from one word to the next below which they are no longer told apart

export class Stage {
  constructor(lab) {
    this.lab = lab
    const { words } = lab
    const w = words.stage
    this.beside = 'colocated'
    this.toggle = button(w.play, () => this.play(), { class: 'pill main', 'data-do': 'play' })
    this.scrub = el('input', { type: 'range', min: 0, max: 1000, value: 0, 'aria-label': w.scrub, 'data-do': 'scrub', oninput: () => this.to((this.scrub.value / 1000) * this.until) })
    this.clock = el('output', { class: 'clock' })
    this.follow = el('select', { 'data-do': 'person', onchange: () => this.choose(+this.follow.value) })
    const other = (name) => el('option', { value: name }, words.arrangements[name])
    this.other = el('select', { 'data-do': 'beside', onchange: () => this.turn(this.other.value) }, other('colocated'), other('chunked'))
    this.keys = el('p', { class: 'key' }, ...Object.entries(w.keys).map(([name, text]) => el('span', {}, el('i', { class: name }), text)))
    this.rows = el('div', { class: 'arrangements' })
    this.root = el('div', { 'data-stage': '', hidden: true, class: 'stage' },
      el('div', { class: 'row' }, this.toggle, this.scrub, this.clock, el('label', {}, w.person, this.follow), el('label', {}, words.controls.together, this.other), tag(lab.scene, 'simulated', true)),
      this.rows, this.keys)
  }

  show(sim) {
    this.root.hidden = !sim
    if (!sim || sim === this.sim) return
    const again = this.sim && sim.asked.seed === this.sim.asked.seed && sim.asked.mix === this.sim.asked.mix
    this.halt()
    this.sim = sim
    const shown = this.pictures.colocated.people.filter(({ words }) => words.length)
    const longest = shown.reduce((most, one) => (pauseOf(one).long > pauseOf(most).long ? one : most))
    this.person = again && this.person < shown.length ? this.person : shown.indexOf(longest)
    this.follow.replaceChildren(...shown.map((_, index) => el('option', { value: index }, String(index + 1))))
    this.follow.value = this.person
    this.build()
  }

  get pictures() {
    return Object.fromEntries(Object.entries(this.sim.arrangements).map(([name, { picture }]) => [name, picture]))
  }

  get until() {
    return this.pictures.split.until
  }

  turn(name) {
    this.beside = name
    this.build()
  }

  choose(person) {
    this.person = person
    this.build()
  }

  close() {
    this.halt()
  }

  /** All lanes anew, at the person's longest pause where each machine does both: there pens rest. */
  build() {
    const { from, to } = pauseOf(this.pictures[this.beside].people[this.person])
    this.heads = []
    this.boxes = [this.beside, 'split'].map((name) => this.arrangement(name))
    this.rows.replaceChildren(...this.boxes.map(({ root }) => root))
    Object.assign(this.root.dataset, { until: this.until, person: this.person + 1, beside: this.beside })
    this.to((from + to) / 2)
  }

  arrangement(name) {
    const { words } = this.lab
    const picture = this.pictures[name]
    const rows = picture.machines.map((machine, index) => this.row(picture, machine, index))
    if (name === 'split') rows.splice(this.sim.readers, 0, this.link(picture))
    const one = picture.people[this.person]
    const { long } = pauseOf(one)
    const told = el('p', { class: 'hint', 'data-told': '', 'data-ttft': one.words[0] - one.at, 'data-pause': long }, fill(words.stage.told, { person: this.person + 1, ttft: time(one.words[0] - one.at), pause: time(long) }))
    const root = el('section', { class: 'arrangement', 'data-arrangement': name }, el('h3', {}, words.arrangements[name]),
      ...rows.map((row) => row.root), this.words(one), this.axis(), told)
    return { name, picture, rows, root }
  }

  lane(...content) {
    const head = el('u', { class: 'head' })
    this.heads.push(head)
    return el('div', { class: 'lane-track' }, ...content, head)
  }

  x(seconds) {
    return (WIDE * seconds) / this.until
  }

  canvas(label, ...content) {
    return svg('svg', { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label }, ...content)
  }

  /** A machine: its state now, and its lane: papers read as blocks, words written as ticks, higher where more write. */
  row(picture, machine, index) {
    const { most } = this.sim
    const w = this.lab.words.stage
    const blocks = machine.reads.map(([start, stop]) => svg('rect', { class: 'read', x: this.x(start), width: this.x(stop - start), y: 0, height: HIGH }))
    const writes = machine.writes.map(([start, stop, who]) => {
      const high = Math.max(3, (HIGH * who.length) / most)
      return svg('rect', { class: 'write', x: this.x(start), width: this.x(stop - start), y: HIGH - high, height: high })
    })
    const [spent, words] = machine.writes.reduce(([sum, count], [start, stop, , steps]) => [sum + stop - start, count + steps], [0, 1])
    const ticks = this.x(spent / words) < APART ? [] : machine.writes.flatMap(([start, stop, who, steps]) => {
      const high = Math.max(3, (HIGH * who.length) / most)
      const apart = this.x((stop - start) / steps)
      return Array.from({ length: steps }, (_, k) => `M${this.x(start) + (k + 1) * apart} ${HIGH}V${HIGH - high}`)
    })
    const labels = machine.reads.filter(([start, stop]) => this.x(stop - start) > 14).map(([start, stop, person]) =>
      el('small', { style: `left: ${this.x((start + stop) / 2) / 10}%` }, String(person + 1)))
    const state = el('span', { class: 'doing' })
    const chips = el('span', { class: 'people' })
    const root = el('div', { class: 'lane-row', 'data-machine': machine.name }, el('div', { class: 'desk' }, el('b', {}, fill(w.machine, { n: index + 1 })), state, chips),
      this.lane(this.canvas(w.picture, ...writes, svg('path', { class: 'ticks', d: ticks.join('') }), ...blocks), ...labels))
    return { root, at: (t) => this.now(picture, machine, t, { root, state, chips }) }
  }

  now(picture, machine, t, { root, state, chips }) {
    const w = this.lab.words.stage
    const read = machine.reads.find(([start, stop]) => start <= t && t < stop)
    const here = (one, role) => one[role] === machine.name
    const number = (one) => picture.people.indexOf(one)
    const waits = picture.people.filter((one) => here(one, 'reader') && one.at <= t && t < one.began).map(number)
    const begun = picture.people.filter((one) => here(one, 'reader') && one.began <= t && t < one.first).map(number)
    const writes = picture.people.filter((one) => here(one, 'writer') && (one.landed ?? one.first) <= t && t < one.last).map(number)
    const rests = read && writes.length ? writes.length : 0
    const key = [read?.[2], waits, begun, writes].join('|')
    if (root.key === key) return
    root.key = key
    Object.assign(root.dataset, { reads: read ? read[2] + 1 : '', writes: writes.length, waits: waits.length, rests })
    const told = [read && fill(w.reads, { person: read[2] + 1 }), rests ? fill(w.rests, { n: rests }) : writes.length && fill(w.writes, { n: writes.length })].filter(Boolean)
    setText(state, told.join(' · ') || w.idle)
    const chip = (kind) => (person) => el('i', { class: `chip ${kind}${person === this.person ? ' own' : ''}` }, String(person + 1))
    const some = (people, kind) => [...people.slice(0, CHIPS).map(chip(kind)), ...(people.length > CHIPS ? [`+${people.length - CHIPS}`] : [])]
    chips.replaceChildren(...some(waits, 'wait'), ...some(begun, 'read'), ...some(writes, rests ? 'rest' : 'write'))
  }

  /** The link: notes on their way, from left to right; those whose turn has not come stand at its beginning. */
  link(picture) {
    const w = this.lab.words.stage
    const spans = picture.travels.map(([start, stop]) => svg('rect', { class: 'travel', x: this.x(start), width: Math.max(1, this.x(stop - start)), y: HIGH / 4, height: HIGH / 2 }))
    const way = el('span', { class: 'journey' })
    const state = el('span', { class: 'doing' })
    const root = el('div', { class: 'lane-row link', 'data-machine': 'link' }, el('div', { class: 'desk' }, el('b', {}, w.link), state, way), this.lane(this.canvas(w.link, ...spans)))
    const at = (t) => {
      const going = picture.travels.find(([start, stop]) => start <= t && t < stop)
      const queue = picture.people.filter(({ first, sent }) => sent !== null && first <= t && t < sent)
      const done = going ? (t - going[0]) / (going[1] - going[0]) : 0
      Object.assign(root.dataset, { reads: going ? going[2] + 1 : '', waits: queue.length })
      setText(state, [going && fill(w.travels, { person: going[2] + 1 }), queue.length && fill(w.queue, { n: queue.length })].filter(Boolean).join(' · '))
      way.replaceChildren(...(going ? [el('i', { class: 'chip travel', style: `left: calc(${share(done)} - ${done * 1.9}em)` }, String(going[2] + 1))] : []))
    }
    return { root, at }
  }

  /** What one person saw: the wait, then every word; the longest pause is marked. */
  words(one) {
    const w = this.lab.words.stage
    const { from, to } = pauseOf(one)
    const ticks = one.words.map((word) => `M${this.x(word)} 3V${HIGH - 3}`).join('')
    return el('div', { class: 'lane-row words', 'data-words': one.words.length }, el('div', { class: 'desk' }, el('b', {}, fill(w.words, { n: this.person + 1 }))),
      this.lane(this.canvas(fill(w.words, { n: this.person + 1 }),
        svg('rect', { class: 'wait', x: this.x(one.at), width: this.x(one.began - one.at), y: 8, height: HIGH - 16 }),
        svg('rect', { class: 'read', x: this.x(one.began), width: this.x(one.first - one.began), y: 5, height: HIGH - 10 }),
        ...(to > from ? [svg('rect', { class: 'rest', x: this.x(from), width: this.x(to - from), y: 3, height: HIGH - 6 })] : []),
        svg('path', { class: 'word', d: ticks }))))
  }

  axis() {
    const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000].find((each) => this.until / each <= 10) ?? 10000
    const ticks = Array.from({ length: Math.floor(this.until / step) + 1 }, (_, k) => k * step)
    return el('div', { class: 'lane-row axis' }, el('div', { class: 'desk' }, this.lab.words.stage.axis),
      el('div', { class: 'lane-track' }, ...ticks.map((at) => el('small', { style: `left: ${this.x(at) / 10}%` }, number(at, step < 1 ? 1 : 0)))))
  }

  play() {
    const { stage } = this.lab.words
    if (this.timer) return this.halt()
    if (this.at >= this.until) this.to(0)
    setText(this.toggle, stage.pause)
    const pace = this.until / Math.min(MOST, Math.max(LEAST, this.until))
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches
    const [begin, from] = [performance.now(), this.at]
    const on = () => {
      this.to(from + ((performance.now() - begin) / 1000) * pace, true)
      if (this.at >= this.until) return this.halt()
      this.timer = setTimeout(on, still ? 500 : FRAME)
      return undefined
    }
    this.timer = setTimeout(on, FRAME)
    return undefined
  }

  halt() {
    clearTimeout(this.timer)
    this.timer = null
    setText(this.toggle, this.lab.words.stage.play)
  }

  to(t, playing = false) {
    if (!playing) this.halt()
    this.at = Math.max(0, Math.min(this.until, t))
    this.scrub.value = (1000 * this.at) / this.until
    this.root.dataset.at = this.at
    setText(this.clock, fill(this.lab.words.stage.clock, { time: `${number(this.at, 2)} s`, all: `${number(this.until, 1)} s` }))
    for (const head of this.heads) head.style.left = `${(100 * this.at) / this.until}%`
    for (const { rows } of this.boxes) for (const row of rows) row.at(this.at)
  }
}

/** The longest gap between two words of one person. */
function pauseOf({ words }) {
  let [from, to] = [0, 0]
  for (let k = 1; k < words.length; k++) if (words[k] - words[k - 1] > to - from) [from, to] = [words[k - 1], words[k]]
  return { from, to, long: to - from }
}
