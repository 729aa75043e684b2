/**
 * Two arrangements of machines at one moment of the simulation: what is read, who writes, which pens rest, which notes
 * travel; under each its chart over time, with a line at that moment. All of it are spans that the simulation told (`picture`
 * of engine/disaggregation/told.py).
 *
 * The root is [data-stage] with data-at (simulated seconds), data-until and data-person. Each [data-arrangement=NAME] has
 * cards [data-machine=NAME] with data-reads (a person's number or empty), data-writes and data-waits (how many), data-rests.
 */
import { button, el, fill, setText, tag } from '../../scene/dom.js'
import { number } from '../../scene/text.js'
import { share, time } from './simulation.js'

const LEAST = 12 // seconds that the whole takes to play, at least
const MOST = 30
const FRAME = 66 // milliseconds between two pictures
const CHIPS = 6

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
    this.boxes = ['together', 'split'].map((place) => this.box(place))
    this.rows = el('div', { class: 'arrangements two' }, ...this.boxes.map(({ root }) => root))
    this.root = el('div', { 'data-stage': '', hidden: true, class: 'stage' },
      el('div', { class: 'row' }, this.toggle, this.scrub, this.clock, el('label', {}, w.person, this.follow), el('label', {}, words.controls.together, this.other), tag(lab.scene, 'simulated', true)),
      this.rows)
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
    for (const { chart } of this.boxes) chart.close()
  }

  /** One arrangement: its machines as they are now, its chart with a line at the moment, what the person followed had. */
  box(place) {
    const chart = this.lab.chart('disaggregation-lanes')
    const [title, cards, head, told] = [el('h3'), el('div', { class: 'cards' }), el('u', { class: 'head', hidden: true }), el('p', { class: 'hint', 'data-told': '' })]
    const box = { place, chart, title, cards, head, told, rows: [] }
    box.root = el('section', { class: 'arrangement' }, title, cards, el('div', { class: 'clocked' }, chart.root, head), told)
    chart.onDrawn = () => this.lie(box)
    return box
  }

  /** Both anew, at the person's longest pause where each machine does both: there pens rest. */
  build() {
    const { from, to } = pauseOf(this.pictures[this.beside].people[this.person])
    for (const box of this.boxes) this.fill(box, box.place === 'split' ? 'split' : this.beside)
    Object.assign(this.root.dataset, { until: this.until, person: this.person + 1, beside: this.beside })
    this.to((from + to) / 2)
  }

  fill(box, name) {
    const { words } = this.lab
    const picture = this.pictures[name]
    box.rows = picture.machines.map((machine, index) => this.row(picture, machine, index))
    if (name === 'split') box.rows.splice(this.sim.readers, 0, this.link(picture))
    const one = picture.people[this.person]
    const [ttft, { long }] = [one.words[0] - one.at, pauseOf(one)]
    box.root.dataset.arrangement = name
    setText(box.title, words.arrangements[name])
    box.cards.replaceChildren(...box.rows.map(({ root }) => root))
    Object.assign(box.told.dataset, { ttft, pause: long })
    setText(box.told, fill(words.stage.told, { person: this.person + 1, ttft: time(ttft), pause: time(long) }))
    this.lab.draw(box.chart, { ...this.sim.asked, pick: `${name}/${this.person + 1}` })
  }

  /** The line stands over the chart's own paper. */
  lie(box) {
    const { frame } = box.chart
    if (!box.heard) {
      box.heard = true
      frame.on('plotly_afterplot', () => this.lie(box))
    }
    const { l, t, w, h } = frame._fullLayout._size // Plotly tells its paper's place nowhere else
    Object.assign(box.head.style, { left: `${frame.offsetLeft + l + (w * this.at) / this.until}px`, top: `${frame.offsetTop + t}px`, height: `${h}px` })
    box.head.hidden = false
  }

  /** A machine: its state now, and who is there. */
  row(picture, machine, index) {
    const [state, chips] = [el('span', { class: 'doing' }), el('span', { class: 'people' })]
    const root = el('div', { class: 'desk', 'data-machine': machine.name }, el('b', {}, fill(this.lab.words.stage.machine, { n: index + 1 })), state, chips)
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
    const way = el('span', { class: 'journey' })
    const state = el('span', { class: 'doing' })
    const root = el('div', { class: 'desk link', 'data-machine': 'link' }, el('b', {}, w.link), state, way)
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
    for (const box of this.boxes) {
      for (const row of box.rows) row.at(this.at)
      if (box.heard) this.lie(box)
    }
  }
}

/** The longest gap between two words of one person. */
function pauseOf({ words }) {
  let [from, to] = [0, 0]
  for (let k = 1; k < words.length; k++) if (words[k] - words[k - 1] > to - from) [from, to] = [words[k - 1], words[k]]
  return { from, to, long: to - from }
}
