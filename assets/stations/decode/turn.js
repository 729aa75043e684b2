/**
 * One turn of the loop in slow motion. The clock is the model's own: from the moment the word before was chosen to the
 * moment this one was; the pass with its layers first, then what is left (measuring, choosing, telling).
 *
 * [data-turn] tells the moment: word, phase (in, layer, logits, choose, done), layer, clock, seconds.
 */
import { button, el, fill, setText, tag } from '../../scene/dom.js'
import { number, visible } from '../../scene/text.js'
import { paletteOf } from '../../scene/theme.js'
import { drawNotes } from './notes_canvas.js'
import { time } from './times.js'

const FACTORS = [1, 10, 50, 200]
const share = (value) => (value < 0.0005 ? '<0.1%' : `${(100 * value).toFixed(1)}%`)

export class Turn {
  /** `desk`: {words, scene, api, loop, recorded, k, hideSink, onWord(k)}; `steps`: what leads to other words. */
  constructor(desk, steps) {
    const { words } = desk
    this.desk = desk
    this.factor = 50
    this.clock = 0
    this.play = button(words.turn.play, () => this.toggle(), { class: 'pill main', 'data-do': 'play' })
    this.speed = el('select', { 'data-choose': 'slower', onchange: ({ target }) => { this.factor = +target.value } },
      ...FACTORS.map((n) => el('option', { value: n, selected: n === 50 }, n === 1 ? words.turn.real : fill(words.turn.times, { n }))))
    this.told = el('p', { class: 'told', 'data-turn': true, 'aria-live': 'off' })
    this.at = el('p', { class: 'clock-line' })
    this.into = el('div', { class: 'card into' })
    this.canvas = el('canvas', { role: 'img' })
    this.logits = el('ol', { class: 'logits' })
    this.out = el('div', { class: 'card out' })
    this.note = el('p', { class: 'caption' })
    this.gap = el('p', { class: 'caption' })
    const stage = (name, title, ...children) => el('div', { class: `stage ${name}` }, el('h4', {}, title), ...children)
    this.figure = el('div', { class: 'figure' }, stage('in', words.turn.in, this.into), stage('layers', words.turn.layers, this.canvas),
      stage('scores', words.turn.logits_short, this.logits), stage('end', words.turn.out, this.out))
    this.root = el('div', { class: 'turn' }, el('div', { class: 'row' }, this.play,
      button(words.turn.step, () => this.step(), { class: 'pill', 'data-do': 'layer' }), steps, el('label', {}, words.turn.slower, this.speed), this.at),
    this.told, this.figure, this.gap, this.note)
    this.watch = new ResizeObserver(() => this.frame())
    this.watch.observe(this.canvas)
  }

  close() {
    this.closed = true
    this.pause()
    this.watch.disconnect()
  }

  /** Another word: its turn, at its beginning or, while playing, going on. */
  async show() {
    const { words, loop, k, scene, recorded } = this.desk
    const word = loop.words[k]
    this.word = word
    this.clock = 0
    this.reads = null
    const { step } = word
    this.figure.hidden = this.gap.hidden = this.note.hidden = !step
    this.play.disabled = !step && !this.nextTurn(k)
    if (!step) return this.without(word)
    this.total = Math.max(word.gap ?? 0, step.seconds)
    const token = loop.tokens[step.position]
    const most = Math.max(1e-9, word.chose.candidates[0]?.probability ?? 1)
    this.into.replaceChildren(el('b', { dir: 'auto', class: token.special ? 'special' : '' }, visible(token.text)), el('span', {}, fill(words.turn.id, { id: token.id })),
      el('span', {}, fill(words.turn.position, { position: step.position + 1 })), el('span', {}, fill(words.turn.kept, { n: step.position })))
    this.logits.replaceChildren(...word.chose.candidates.map(({ id, text, probability }) =>
      el('li', { 'data-id': id, 'data-probability': probability, 'aria-current': id === word.token.id },
        el('i', { style: `width: ${(100 * probability) / most}%` }), el('span', { dir: 'auto' }, visible(text)), el('b', {}, share(probability)))))
    const last = k === loop.words.length - 1
    this.out.replaceChildren(el('b', { dir: 'auto', class: word.token.special ? 'special' : '' }, visible(word.token.text)),
      el('span', {}, fill(words.turn.chosen, { share: share(word.chose.probability), rank: word.chose.rank + 1 })),
      el('span', {}, last && loop.finished ? words.turn.last : fill(words.turn.again, { position: step.position + 2 })))
    const shared = step.together > 1 ? ` ${fill(words.turn.shared, { n: step.together - 1 })}` : ''
    const again = loop.started.settings.notes === false ? ` ${fill(words.turn.no_notes, { n: number(step.position + 1) })}` : ''
    this.gap.replaceChildren(`${words.turn[recorded ? 'source_recorded' : 'source_measured']} ${fill(words.turn.gap, { pass: time(step.seconds), rest: time(this.total - step.seconds) })}${shared}${again} `, tag(scene, recorded ? 'recorded' : 'measured'))
    this.frame()
    await this.read(step.position)
  }

  without(word) {
    const { words, k } = this.desk
    setText(this.told, fill(words.turn[{ prefill: 'first', put: 'put', taken: 'taken', guessed: 'guessed' }[word.from]], { word: shown(word.token) }))
    Object.keys(this.told.dataset).forEach((name) => name !== 'turn' && delete this.told.dataset[name])
    Object.assign(this.told.dataset, { word: k, phase: word.from })
    setText(this.at, '')
  }

  /** Where every layer looked: asked for once per word. */
  async read(row) {
    const { words, api } = this.desk
    try {
      const found = await api.bytes(`/reads?row=${row}`)
      if (this.closed || this.word.step?.position !== row) return
      this.reads = { data: found.data, columns: row + 1 }
      setText(this.note, words.turn[found.header('X-Source') === 'recorded' ? 'reads_recorded' : 'reads'])
      this.canvas.dataset.reads = found.header('X-Source')
    } catch (problem) {
      if (this.closed) return
      setText(this.note, problem.message || words.turn.reads_none)
      this.canvas.dataset.reads = 'none'
    }
    this.frame()
  }

  toggle() {
    if (this.timer) return this.pause()
    const { loop, k, onWord } = this.desk
    if (!this.word.step || (this.clock >= this.total && this.nextTurn(k))) onWord(this.nextTurn(k) ?? k)
    else if (this.clock >= this.total) this.clock = 0
    setText(this.play, this.desk.words.turn.pause)
    this.play.dataset.playing = true
    let before = performance.now()
    let rest = 0
    const tick = (now) => {
      this.timer = requestAnimationFrame(tick)
      const passed = (now - before) / 1000
      before = now
      if (this.clock < this.total) {
        this.clock = Math.min(this.total, this.clock + passed / this.factor)
        rest = 0
        return this.frame()
      }
      rest += passed
      if (rest < 0.9) return // the word stands a moment
      const next = this.nextTurn(this.desk.k)
      if (next === null || next >= loop.words.length) return this.pause()
      onWord(next)
    }
    this.timer = requestAnimationFrame(tick)
  }

  nextTurn(k) {
    const next = this.desk.loop.words.findIndex((word, at) => at > k && word.step)
    return next < 0 ? null : next
  }

  pause() {
    cancelAnimationFrame(this.timer)
    this.timer = null
    setText(this.play, this.desk.words.turn.play)
    delete this.play.dataset.playing
  }

  /** To the end of the layer at work; after the last to the end of the pass, then to the end of the turn. */
  step() {
    this.pause()
    const { k, onWord } = this.desk
    if (!this.word.step || this.clock >= this.total) {
      const next = this.nextTurn(k)
      return next === null ? undefined : onWord(next)
    }
    const marks = [...ends(this.word.step.layer_seconds), this.word.step.seconds, this.total]
    this.clock = marks.find((mark) => mark > this.clock + 1e-9) ?? this.total
    this.frame()
  }

  frame() {
    if (!this.word?.step || this.closed) return
    const { words, loop, hideSink } = this.desk
    const { step, token } = this.word
    const { facts } = loop.started
    const { done, phase } = momentOf(step, this.clock, this.total)
    const layer = Math.min(facts.layers, Math.floor(done + 1e-9) + (phase === 'layer' ? 1 : 0))
    const input = shown(loop.tokens[step.position])
    const gaps = {
      word: phase === 'done' ? shown(token) : input, position: step.position + 1, layer, layers: facts.layers, notes: number(step.position + 1),
      n: number(facts.vocabulary), all: time(this.total),
    }
    setText(this.told, fill(words.turn[`at_${phase}`], gaps))
    setText(this.at, fill(words.turn.clock, { now: time(this.clock), all: time(this.total) }))
    Object.assign(this.told.dataset, {
      word: this.desk.k, phase, layer, clock: this.clock, seconds: this.total, pass: step.seconds, token: token.id, position: step.position, together: step.together,
    })
    this.figure.dataset.phase = phase
    const colours = paletteOf(this.root.closest('.exam-scene'))
    const style = getComputedStyle(this.root)
    const labels = {
      paper: fill(words.turn.paper, { n: loop.prompt }), answer: fill(words.turn.answer, { n: step.position + 1 - loop.prompt }), time: words.turn.layer_time,
    }
    drawNotes(this.canvas, { layers: facts.layers, positions: step.position + 1, prompt: loop.prompt, seconds: step.layer_seconds, reads: this.reads, hideSink },
      done, { ...colours, labels, font: `${Math.max(11, 0.8 * parseFloat(style.fontSize))}px ${style.fontFamily}` })
    this.canvas.setAttribute('aria-label', this.told.textContent)
    this.canvas.dataset.done = done.toFixed(3)
  }
}

/** How many layers are done (the last one in part) when `clock` of a turn's `total` seconds has passed, and what goes on. */
export function momentOf(step, clock, total) {
  if (clock <= 0) return { done: 0, phase: 'in' }
  const marks = ends(step.layer_seconds)
  const at = marks.findIndex((mark) => clock < mark - 1e-12)
  if (at >= 0) {
    const begin = at ? marks[at - 1] : 0
    return { done: at + (clock - begin) / (marks[at] - begin), phase: 'layer' }
  }
  const phase = clock < step.seconds - 1e-12 ? 'logits' : clock < total - 1e-12 ? 'choose' : 'done'
  return { done: marks.length, phase }
}

function ends(seconds) {
  let sum = 0
  return seconds.map((one) => (sum += one))
}

const shown = (token) => `“${visible(token.text)}”`
