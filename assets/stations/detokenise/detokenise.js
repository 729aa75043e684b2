/** Station four: ids become bytes, bytes become characters, and a character waits until it is whole. */
import { owner } from '../../scene/compose/compose.js'
import { button, el, fill, setFlag, setText, tag } from '../../scene/dom.js'
import { bytesOf } from '../../scene/trace/norms.js'
import { number } from '../../scene/text.js'
import { answerOf } from './answer.js'
import { hex, shown } from '../shared/pieces.js'
import { mountStation } from '../shared/station.js'

/** Answers in which a character comes in pieces. The model goes on with what it is given; the limit may cut a character. */
const TRIES = {
  emoji: { prompt: '🎉🎉🎉🎉🎉🎉', mode: 'raw', max_new_tokens: 24 },
  chinese: { prompt: '今天天气 今天天气 今天天气 今天天气', mode: 'raw', max_new_tokens: 23 },
  cut: { prompt: '🎉🎉🎉🎉🎉🎉', mode: 'raw', max_new_tokens: 8 },
}
const TAPE = 30 // bytes shown before the present one

export const mount = (element, options) => mountStation(element, options, (station) => new Detokenise(station))

class Detokenise {
  constructor(station) {
    this.station = station
    this.events = []
    this.at = null
    const { words } = station
    this.trouble = el('p', { class: 'refusal', role: 'alert', hidden: true })
    this.told = el('p', { class: 'count-line', 'aria-live': 'polite' })
    this.ids = el('div', { class: 'chips ids', role: 'group', 'aria-label': words.ids })
    this.tape = el('div', { class: 'tape', 'aria-label': words.bytes })
    this.seen = el('p', { class: 'seen', dir: 'auto', 'aria-label': words.seen })
    this.naive = el('p', { class: 'seen naive', dir: 'auto', 'aria-label': words.naive })
    this.counts = el('p', { class: 'hint', 'data-answer': '' })
    this.root = el('div', { class: 'body' }, this.tries(), this.workshop(), this.papers())
  }

  tries() {
    const { words } = this.station
    const make = (name) => button(words[`try_${name}`], () => this.run(name), { class: 'pill', 'data-try': name })
    return el('div', { class: 'row tries' }, el('span', {}, words.try), ...Object.keys(TRIES).map(make), this.trouble)
  }

  workshop() {
    const { words } = this.station
    const step = (name, by, sign) => button(sign, () => this.go(by), { class: 'pill', 'data-do': name, 'aria-label': words[name], title: words[name] })
    this.slider = el('input', { type: 'range', min: 0, max: 0, value: 0, 'aria-label': words.step })
    this.slider.addEventListener('input', () => this.choose(Number(this.slider.value)))
    const row = (name, sub, ...children) => el('div', { class: 'lane' }, el('h3', {}, words[name], el('span', {}, words[sub])), ...children)
    const section = el('section', { class: 'sheet', tabindex: 0, 'aria-label': words.workshop },
      el('header', {}, el('h2', {}, words.workshop, el('span', {}, words.workshop_sub)), el('div', { class: 'row' }, step('back', -1, '◀'), this.slider, step('forward', 1, '▶'))),
      this.told, row('ids', 'ids_sub', this.ids), row('bytes', 'bytes_sub', this.tape))
    section.addEventListener('keydown', (event) => this.key(event))
    return section
  }

  papers() {
    const { words } = this.station
    const paper = (name, content) => el('section', { class: 'sheet', 'aria-label': words[name] },
      el('header', {}, el('h2', {}, words[name], el('span', {}, words[`${name}_sub`]))), content)
    return el('div', {}, el('div', { class: 'two' }, paper('seen', this.seen), paper('naive', this.naive)), this.counts)
  }

  key(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key]
    if (by === undefined || event.target === this.slider) return
    event.preventDefault()
    this.go(by)
  }

  /** Until the run's events so far are here. */
  start() {
    const { moment } = this.station.options
    this.from = moment?.at ?? null
    this.draw()
    return new Promise((resolve) => {
      this.station.follow((events) => {
        this.events.push(...events)
        this.draw()
        resolve()
      }, (state) => {
        if (state === 'live') return this.tell('')
        this.tell(this.station.words[state])
        resolve()
      })
    })
  }

  /** Have the model write such an answer: a run like any other. */
  async run(name) {
    const { station } = this
    try {
      const { id } = await station.ask('runs', { ...TRIES[name], owner: owner() })
      station.options.onRun(id)
    } catch (refusal) {
      this.tell(refusal.message)
    }
  }

  tell(sentence) {
    this.trouble.hidden = !sentence
    setText(this.trouble, sentence)
  }

  get last() {
    const { steps, end } = this.answer
    return steps.length - (end?.released ? 0 : 1)
  }

  /** Which step is shown: chosen by hand, else that of the moment in the address, else the newest. */
  get step() {
    if (this.at !== null) return Math.min(this.at, this.last)
    if (this.from === null) return this.last
    return this.answer.steps.filter((step) => step.at <= this.from).length - 1
  }

  go(by) {
    this.choose(Math.min(this.last, Math.max(0, this.step + by)))
  }

  choose(step) {
    this.at = step
    this.draw()
    const { run, moment, onMoment } = this.station.options
    const chosen = this.answer.steps[Math.min(step, this.answer.steps.length - 1)]
    if (chosen) onMoment({ run, at: chosen.at.toFixed(6), layer: moment?.layer, head: moment?.head })
  }

  draw() {
    this.answer = answerOf(this.events)
    const { steps, end } = this.answer
    const { step, last } = this
    const over = step === steps.length
    const now = steps[Math.min(step, steps.length - 1)]
    Object.assign(this.slider, { max: Math.max(0, last), value: Math.max(0, step), disabled: last < 1 })
    this.drawTold(now, over, end)
    this.drawIds(steps, step)
    this.drawTape(steps, step, now)
    this.drawPapers(now, over, end)
    this.drawCounts(steps, step, now, end)
  }

  drawTold(now, over, end) {
    const { words } = this.station
    if (!now) return setText(this.told, this.events.some(({ type }) => type === 'finished') ? words.no_word : words.not_yet)
    const values = { bytes: now.held.length, text: now.released, token: shown(now.token.text), id: now.token.id }
    const name = over ? 'told_end' : now.token.special ? 'told_special' : now.held.length && now.released ? 'told_both'
      : now.held.length ? 'told_held' : now.waiting ? 'told_stop' : 'told_out'
    setText(this.told, fill(words[name], over ? { text: end.released, bytes: values.bytes } : values))
  }

  drawIds(steps, step) {
    const chips = steps.map(({ token, held }, index) =>
      el('button', { type: 'button', class: ['piece', token.special && 'special', held.length && 'waits', /⟨[0-9A-F]{2}⟩/.test(token.text) && 'part'].filter(Boolean).join(' '),
        'aria-current': index === step ? 'step' : null, 'data-index': index, onclick: () => this.choose(index) },
      el('b', { dir: 'auto' }, shown(token.text)), el('i', {}, String(token.id))))
    this.ids.replaceChildren(...chips)
    const current = chips[step]
    if (current) this.ids.scrollLeft = current.offsetLeft - this.ids.clientWidth / 2
  }

  /** Every byte a box; those of one token are together, those that wait are open. */
  drawTape(steps, step, now) {
    const boxes = steps.slice(0, step + 1).filter(({ token }) => !token.special).flatMap(({ token }, index, all) =>
      Array.from(bytesOf(token.bytes), (byte) => ({ byte, fresh: index === all.length - 1 && !now.token.special && step < steps.length })))
    const held = now?.held.length ?? 0
    this.tape.replaceChildren(...boxes.map(({ byte, fresh }, index) =>
      el('span', { class: [index >= boxes.length - held && 'held', fresh && 'fresh'].filter(Boolean).join(' ') }, hex([byte]))).slice(-TAPE))
  }

  drawPapers(now, over, end) {
    const { words } = this.station
    const text = over ? end.text : (now?.text ?? '')
    const half = !over && now?.held.length ? el('span', { class: 'half', title: words.half }, '▒') : ''
    this.seen.replaceChildren(text, half)
    const pieces = (now?.naive ?? '').split(/(\ufffd+)/)
    this.naive.replaceChildren(...pieces.map((piece) => (piece.startsWith('\ufffd') ? el('mark', {}, piece) : piece)))
  }

  drawCounts(steps, step, now, end) {
    const { words, options } = this.station
    const started = this.events.find(({ type }) => type === 'started')
    const waits = steps.filter(({ held }) => held.length).length
    const broken = steps.length ? Array.from(steps[steps.length - 1].naive).filter((one) => one === '\ufffd').length : 0
    Object.assign(this.counts.dataset, {
      run: options.run, step, steps: steps.length, held: hex(now?.held ?? []), text: step === steps.length && end ? end.text : (now?.text ?? ''),
      naive: now?.naive ?? '', released: now?.released ?? '', waits, broken, end: end ? end.released : '', over: Boolean(end),
      ids: steps.map(({ token }) => token.id).join(' '),
    })
    setFlag(this.root, 'data-live', !end)
    if (!started) return this.counts.replaceChildren()
    const kind = this.station.recorded ? 'recorded' : 'measured'
    this.counts.replaceChildren(fill(waits ? words.counts : words.counts_none, { n: number(steps.length), waits: number(waits), broken: number(broken) }), ' ', tag(options.scene, kind))
  }
}
