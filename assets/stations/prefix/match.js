/**
 * Two papers, token by token: which ids are equal from the start, what a second run takes over, and what it reads. The
 * papers are typed here, cut by the real tokenizer, and can really be sat one after the other.
 *
 * The root is [data-match] (equal ids) with data-taken, data-blocks (taken in whole blocks), data-read; while a cut is
 * on its way data-cut is "waiting". [data-sat] tells what the service took over.
 */
import { owner } from '../../scene/compose/compose.js'
import { button, el, fill, setText } from '../../scene/dom.js'
import { duration, number } from '../../scene/text.js'
import { Trace } from '../../scene/trace/trace.js'
import { figuresOf } from '../shared/figures.js'
import { shown } from '../shared/pieces.js'
import { sit } from '../shared/sitting.js'

const PAUSE = 300 // milliseconds after the last key until the papers are cut
const MOST = 400 // tokens drawn of a paper
const MODES = ['raw', 'chat']
const time = (seconds) => duration(seconds).join(' ')

/** Equal ids from the start, and what is taken over of `first` by `second`: its last position is always read. */
export function compare(first, second, block) {
  const differs = second.findIndex(({ id }, i) => first[i]?.id !== id)
  const match = differs < 0 ? second.length : differs
  const taken = Math.max(0, Math.min(match, second.length - 1))
  return { match, taken, blocks: taken - (taken % block) }
}

export class Match {
  constructor(lab, block) {
    Object.assign(this, { lab, block, mode: 'raw', turn: 0 })
    const { words } = lab
    const w = words.match
    const area = (name) => el('textarea', { rows: 3, dir: 'auto', 'aria-label': w[name], 'data-do': name, maxlength: 20000, oninput: () => this.soon() })
    this.first = area('first')
    this.second = area('second')
    this.presets = el('div', { class: 'row', 'data-presets': '' })
    this.modes = el('fieldset', { class: 'switch' }, el('legend', {}, w.mode), ...MODES.map((mode) => el('label', {}, el('input', { type: 'radio', name: 'match-mode', value: mode, checked: mode === 'raw', onchange: () => { this.mode = mode; this.cut() } }), el('span', {}, w[mode]))))
    this.lines = el('div', { class: 'match' })
    this.says = el('p', { class: 'verdict', 'aria-live': 'polite' })
    this.floor = el('p', { class: 'hint', 'data-floor': '' })
    this.go = button(w.sit, () => this.sit(), { class: 'pill main', 'data-do': 'sit', disabled: true })
    this.sat = el('p', { class: 'told', 'data-sat': '', 'aria-live': 'polite' })
    const key = (name) => el('span', {}, el('i', { class: name }), w.key[name])
    this.root = el('div', { 'data-match': '', 'data-cut': '' }, el('link', { rel: 'stylesheet', href: new URL('../paged/paged.css', import.meta.url).href }),
      this.presets, el('div', { class: 'papers' }, ...['first', 'second'].map((name) => el('label', { class: 'paper' }, el('span', {}, w[name]), this[name]))), el('div', { class: 'row options' }, this.modes),
      this.lines, el('div', { class: 'key' }, ...['equal', 'parts', 'again', 'edge'].map(key)), this.says, this.floor, el('div', { class: 'row' }, this.go), this.sat)
  }

  show() {
    const { told, words } = this.lab
    if (!told || this.pairs) return
    this.pairs = [...(told.plan.find(({ piece }) => piece === 'pairs')?.pairs ?? []), { name: 'lesson', first: told.runs.first.prompt, second: told.runs.plain.prompt }]
    this.presets.replaceChildren(el('span', {}, words.match.presets), ...this.pairs.map((pair) => button(words.pairs[pair.name], () => this.choose(pair), { class: 'pill', 'data-pair': pair.name })))
    this.choose(this.pairs[0])
  }

  close() {
    clearTimeout(this.later)
    this.closed = true
    this.leave?.()
  }

  choose({ first, second }) {
    this.first.value = first
    this.second.value = second
    this.cut()
  }

  soon() {
    clearTimeout(this.later)
    this.root.dataset.cut = 'waiting'
    this.later = setTimeout(() => this.cut(), PAUSE)
  }

  async cut() {
    clearTimeout(this.later)
    const turn = ++this.turn
    this.root.dataset.cut = 'waiting'
    setText(this.sat, '')
    try {
      const cuts = await Promise.all([this.first, this.second].map(({ value }) => this.lab.station.ask('tokenise', { text: value, model: this.lab.told.model, mode: this.mode })))
      if (turn === this.turn) this.draw(...cuts.map(({ tokens }) => tokens))
    } catch ({ message }) {
      if (turn !== this.turn) return
      this.root.dataset.cut = 'failed'
      this.lines.replaceChildren()
      setText(this.says, message || this.lab.unreachable)
    }
  }

  draw(first, second) {
    const { words } = this.lab
    const w = words.match
    const { match, taken, blocks } = compare(first, second, this.block)
    const empty = !first.length || !second.length
    this.go.disabled = empty || Boolean(this.sitting)
    const one = (tokens, name, own) => {
      const line = el('div', { class: 'line', 'data-line': name }, el('b', {}, fill(w.tokens[name], { n: number(tokens.length) })), ...tokens.slice(0, MOST).map(({ id, text }, i) => el('span', {
        class: ['token', i < (own ? taken : match) && 'equal', i === match && 'parts', own && i >= taken && i < match && 'again', i > match && 'over', own && blocks && i === blocks - 1 && 'edge'].filter(Boolean).join(' '),
        'data-id': id,
      }, el('span', { dir: 'auto' }, shown(text)), el('small', {}, String(id)))))
      if (tokens.length > MOST) line.append(el('span', {}, fill(w.more, { n: number(tokens.length - MOST) })))
      return line
    }
    this.lines.replaceChildren(one(first, 'first', false), one(second, 'second', true))
    for (const line of this.lines.children) {
      const at = line.querySelector('.parts, .again')
      if (at) line.scrollTop = at.offsetTop - line.offsetTop - line.clientHeight / 2
    }
    Object.assign(this.root.dataset, { match, taken, blocks, read: second.length - taken, cut: 'done' })
    const values = { match: number(match), taken: number(taken), read: number(second.length - taken), n: number(second.length) }
    setText(this.says, empty ? '' : fill(w[match === 0 ? 'none' : match === second.length ? 'whole' : 'some'], values))
    setText(this.floor, empty ? '' : fill(w.floor, { size: this.block, blocks: number(blocks), count: blocks / this.block, left: number(taken - blocks) }))
  }

  /** Both papers really, the second with `reuse`: what the service took over, and from which run. */
  async sit() {
    const { lab } = this
    const w = lab.words.match
    const settings = { mode: this.mode, max_new_tokens: 8, model: lab.told.model }
    this.sitting = this.go.disabled = true
    this.sat.dataset.sat = 'running'
    setText(this.sat, w.sitting)
    try {
      const runs = []
      for (const [prompt, reuse] of [[this.first.value, false], [this.second.value, true]]) {
        const { id, events } = await sit(lab, { ...settings, prompt, reuse, owner: owner() }, (leave) => { this.leave = leave })
        if (this.closed) return
        const trace = new Trace()
        for (const event of events) trace.push(event)
        runs.push({ id, from: trace.reused?.run, ...figuresOf(trace) })
      }
      const [first, second] = runs
      const others = second.from && second.from !== first.id
      setText(this.sat, fill(w[second.taken ? (others ? 'sat_other' : 'sat') : 'sat_none'], { taken: number(second.taken), n: number(second.prompt), read: number(second.prompt - second.taken), first: time(first.ttft), second: time(second.ttft) }))
      this.sat.append(' ', lab.both.link('exam_room', { run: second.id }, lab.common.both.room))
      Object.assign(this.sat.dataset, { sat: 'finished', run: second.id, taken: second.taken })
    } catch ({ message }) {
      this.sat.dataset.sat = 'failed'
      setText(this.sat, message || lab.unreachable)
    }
    this.sitting = this.go.disabled = false
  }
}
