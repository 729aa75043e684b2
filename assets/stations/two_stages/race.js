/**
 * The race: one question, answered with the notes and without. Both are real runs that differ in one setting
 * (`notes`), one after the other, so that neither slows the other; afterwards both clocks can be watched side by side.
 */
import { button, el, fill, setText } from '../../scene/dom.js'
import { ServiceSource, ask } from '../../scene/source.js'
import { number, visible } from '../../scene/text.js'
import { Chart } from '../shared/chart.js'
import { joined, si } from './stages_data.js'

const SIDES = ['notes', 'none']
const WORDS = 32

export class Race {
  /** `desk`: {words, scene, errors, base, lang, unreachable, onOpen(run)}. */
  constructor(desk) {
    this.desk = desk
    const { words } = desk
    this.lanes = Object.fromEntries(SIDES.map((side) => [side, this.lane(side)]))
    this.start = button(words.race.start, () => this.run(), { class: 'pill main', 'data-do': 'race', disabled: true })
    this.halt = button(words.race.stop, () => this.stop(), { class: 'pill halt', 'data-do': 'race-stop', hidden: true })
    this.again = button(words.race.beside, () => this.replay(), { class: 'pill', 'data-do': 'race-replay', hidden: true })
    this.verdict = el('p', { class: 'verdict', 'aria-live': 'polite', 'data-race': 'idle' })
    const chart = (quantity) => new Chart({ name: `race-${quantity}`, base: desk.base, lang: desk.lang, words: words.chart, scene: desk.scene })
    this.clocks = chart('seconds')
    this.work = chart('flops')
    this.charts = el('div', { class: 'two', hidden: true },
      ...[this.clocks, this.work].map((one) => el('div', {}, el('h3', {}, words.race[one.name]), one.root)))
    this.root = el('div', { class: 'race' }, el('div', { class: 'row' }, this.start, this.halt, this.again),
      el('div', { class: 'two lanes' }, ...SIDES.map((side) => this.lanes[side].root)), this.verdict, this.charts)
  }

  lane(side) {
    const { words } = this.desk
    const clock = el('output', { 'data-clock': '' }, '–')
    const told = el('p', { class: 'hint' }, words.race[`${side}_why`])
    const answer = el('p', { class: 'answer', dir: 'auto', 'data-answer': '' })
    const tokens = el('p', { class: 'tokens' })
    const root = el('div', { class: `lane ${side}`, 'data-lane': side, 'data-state': 'idle' }, el('h3', {}, words.race[side], clock), answer, tokens, told)
    return { side, root, clock, told, answer, tokens, events: [], words: [] }
  }

  /** The question: another run's settings, greedily and short; `race` of its costs. */
  ready(settings, costs) {
    const { prompt, model, mode, control, stop, repetition_penalty: penalty, heads_off: off } = settings
    this.settings = { prompt, model, mode, control, stop, repetition_penalty: penalty ?? 1, heads_off: off ?? [], temperature: 0, max_new_tokens: WORDS }
    this.costs = costs
    this.start.disabled = false
  }

  async run() {
    this.stopped = false
    this.going(true)
    this.say('running', '')
    try {
      for (const side of SIDES) {
        this.clear(this.lanes[side])
      }
      for (const side of SIDES) {
        if (this.stopped || this.closed) break
        await this.sit(this.lanes[side])
      }
      this.over()
    } catch (problem) {
      this.say('failed', problem.message || this.desk.unreachable)
    }
    this.going(false)
  }

  going(on) {
    this.start.hidden = on
    this.halt.hidden = !on
    if (on) this.again.hidden = true
  }

  clear(lane) {
    Object.assign(lane, { events: [], words: [], id: null, text: '' })
    lane.root.dataset.state = 'waiting'
    setText(lane.answer, '')
    lane.tokens.replaceChildren()
    setText(lane.clock, '–')
    setText(lane.told, this.desk.words.race[`${lane.side}_why`])
  }

  async sit(lane) {
    const { desk } = this
    const { id } = await ask(desk.base, 'runs', desk.lang, { ...this.settings, notes: lane.side === 'notes' })
    lane.id = id
    lane.root.dataset.state = 'running'
    await new Promise((resolve, reject) => {
      this.leave = new ServiceSource(desk.base, id).events(0, (events) => this.take(lane, events), resolve, (state) => state === 'refused' && reject({}))
    })
    const last = lane.events.at(-1)
    if (last?.type === 'finished' && last.reason === 'error') throw { message: fill(desk.errors[last.code] ?? '', Object.fromEntries(last.values)) }
    lane.root.dataset.state = last?.reason === 'stopped' ? 'stopped' : 'finished'
  }

  take(lane, events) {
    for (const event of events) {
      lane.events.push(event)
      if (event.type === 'chose') lane.words.push(event)
      if (event.type === 'wrote') lane.text += event.text
    }
    this.show(lane, Infinity)
    this.draw()
  }

  /** A lane as it stood when its clock showed `t`. */
  show(lane, t) {
    const { words } = this.desk
    const seen = lane.words.filter(({ at }) => at <= t)
    const now = Math.min(t, lane.events.at(-1)?.at ?? 0)
    setText(lane.clock, `${number(now, 2)} s`)
    setText(lane.answer, t === Infinity ? lane.text : lane.events.filter((event) => event.type === 'wrote' && event.at <= t).map((event) => event.text).join(''))
    const other = this.lanes[lane.side === 'notes' ? 'none' : 'notes'].words
    lane.tokens.replaceChildren(...seen.map(({ token }, index) => el('span', { title: String(token.id), 'data-id': token.id, 'data-differs': Boolean(other[index]) && other[index].token.id !== token.id }, visible(token.text))))
    if (!seen.length) return
    const gap = seen.length > 1 ? number((1000 * (seen.at(-1).at - seen[0].at)) / (seen.length - 1), 0) : '–'
    setText(lane.told, fill(words.race.so_far, { n: seen.length, ttft: number(1000 * seen[0].at, 0), tpot: gap, flops: si(this.spent(lane, seen.length), 'FLOP') }))
    Object.assign(lane.root.dataset, { run: lane.id, words: seen.length, ids: seen.map(({ token }) => token.id).join(' '), flops: this.spent(lane, seen.length), at: now })
  }

  /** FLOPs of the first `count` words, computed. */
  spent(lane, count) {
    return this.costs[lane.side].slice(0, count).reduce((sum, flops) => sum + flops, 0)
  }

  draw() {
    const [run, beside] = SIDES.map((side) => this.lanes[side]).map((lane) => (lane.words.length ? lane.id : ''))
    this.charts.hidden = !run
    if (run) for (const chart of [this.clocks, this.work]) chart.show({ run, beside })
  }

  over() {
    const { words } = this.desk
    const [one, two] = SIDES.map((side) => this.lanes[side])
    if (!one.words.length || !two.words.length) return this.say('stopped', words.race.stopped)
    const length = Math.min(one.words.length, two.words.length)
    const same = one.words.slice(0, length).findIndex((word, index) => word.token.id !== two.words[index].token.id)
    const alike = same < 0 ? words.race.same : fill(words.race.parted, { n: same + 1 })
    const at = (lane) => lane.words[length - 1].at
    const times = fill(words.race.verdict, {
      n: length, one: number(at(one), 2), two: number(at(two), 2), times: number(at(two) / at(one), 1),
      work: number(this.spent(two, length) / this.spent(one, length), 1),
    })
    this.say(this.stopped ? 'stopped' : 'finished', joined([alike, times]))
    Object.assign(this.verdict.dataset, { same: same < 0, compared: length })
    this.again.hidden = this.stopped
  }

  say(state, text) {
    this.verdict.dataset.race = state
    setText(this.verdict, text)
  }

  /** Both clocks side by side, in the time that was measured. */
  replay() {
    const end = Math.max(...SIDES.map((side) => this.lanes[side].events.at(-1).at))
    const begin = performance.now()
    const frame = () => {
      const t = (performance.now() - begin) / 1000
      for (const side of SIDES) this.show(this.lanes[side], t < end ? t : Infinity)
      if (t < end && !this.closed) this.frame = requestAnimationFrame(frame)
    }
    cancelAnimationFrame(this.frame)
    frame()
  }

  async stop() {
    this.stopped = true
    const lane = SIDES.map((side) => this.lanes[side]).find(({ root }) => root.dataset.state === 'running')
    if (lane?.id) await ask(this.desk.base, `runs/${lane.id}/stop`, this.desk.lang, {}).catch(() => {})
  }

  close() {
    this.closed = true
    this.leave?.()
    this.clocks.close()
    this.work.close()
    cancelAnimationFrame(this.frame)
  }
}
