/**
 * From logits to a word: the real logits of the chosen word, after each of the library's processors. The sliders ask the
 * engine again; the last answer asked for is the one shown. Of a run without notes only its recorded ten are shown.
 */
import { button, el, fill, setText, tag } from '../../scene/dom.js'
import { number, visible } from '../../scene/text.js'

const OFF = { temperature: 1, top_k: 0, top_p: 1, min_p: 0, repetition_penalty: 1 }
const WARM = { temperature: 1.2, top_k: 40, top_p: 0.95, min_p: 0.02, repetition_penalty: 1.1 }
const RANGE = { repetition_penalty: [0.5, 2, 0.05], temperature: [0, 2, 0.05], top_k: [0, 100, 1], top_p: [0.05, 1, 0.01], min_p: [0, 0.5, 0.01] }
const STAGES = Object.keys(RANGE) // in the order of `generate`
const PAUSE = 120
const share = (value) => (value === 0 ? '0' : value < 0.0005 ? '<0.1%' : `${(100 * value).toFixed(1)}%`)

export class Sampling {
  /** `desk`: {words, scene, api, loop, k, held, onFork(candidate), onAgain()}. */
  constructor(desk) {
    const { words, loop } = desk
    this.desk = desk
    const own = loop.started.settings
    this.own = Object.fromEntries([...STAGES, 'seed'].map((name) => [name, own[name] ?? OFF[name] ?? 0]))
    this.chosen = { ...this.own }
    this.inputs = {}
    this.table = el('table', { class: 'funnel' })
    this.told = el('p', { class: 'told', 'data-choice': true, 'aria-live': 'polite' })
    this.problem = el('p', { class: 'trouble' })
    this.why = el('p', { class: 'caption' }, words.sampling.why, ' ', tag(desk.scene, 'computed'))
    this.root = desk.held
      ? el('div', { class: 'sampling' }, this.controls(), this.told, this.problem, el('div', { class: 'wide' }, this.table), this.why)
      : el('div', { class: 'sampling' }, el('p', {}, words.sampling.gone, ' ', button(words.sampling.again, () => desk.onAgain(), { class: 'pill main', 'data-do': 'again-sampling' })), el('div', { class: 'wide' }, this.table))
  }

  close() {
    this.closed = true
    clearTimeout(this.timer)
  }

  controls() {
    const { words } = this.desk
    const seed = el('input', { type: 'number', min: 0, max: 2 ** 32 - 1, step: 1, value: this.chosen.seed, 'data-set': 'seed', oninput: ({ target }) => this.set({ seed: Math.max(0, Math.round(+target.value) || 0) }) })
    this.inputs.seed = { input: seed }
    const set = (name, values) => button(words.sampling[name], () => this.set(values), { class: 'pill', 'data-do': name })
    return el('div', { class: 'sliders' }, ...STAGES.map((name) => this.slider(name)),
      el('div', { class: 'row' }, el('label', {}, words.sampling.seed, seed),
        button(words.sampling.other_seed, () => this.set({ seed: this.chosen.seed + 1 }), { class: 'pill', 'data-do': 'other-seed' }), set('warm', WARM), set('own', this.own)))
  }

  slider(name) {
    const { words } = this.desk
    const [min, max, step] = RANGE[name]
    const value = el('output', {})
    const input = el('input', { type: 'range', min, max, step, value: this.chosen[name], 'data-set': name, oninput: ({ target }) => this.set({ [name]: +target.value }) })
    this.inputs[name] = { input, value }
    setText(value, this.said(name))
    return el('label', { title: words.hints[name] }, el('span', {}, words.sampling[name], value), input, el('small', {}, words.hints[name]))
  }

  said(name) {
    const value = this.chosen[name]
    const digits = Number.isInteger(RANGE[name][2]) ? 0 : 2
    return value === OFF[name] ? this.desk.words.sampling.off : number(value, digits)
  }

  set(values) {
    Object.assign(this.chosen, values)
    for (const [name, { input, value }] of Object.entries(this.inputs)) {
      if (document.activeElement !== input && +input.value !== this.chosen[name]) input.value = this.chosen[name]
      if (value) setText(value, this.said(name))
    }
    this.inputs.seed.input.value = this.chosen.seed
    for (const name of Object.keys(values)) if (this.inputs[name]?.value) this.inputs[name].input.value = this.chosen[name]
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.ask(), PAUSE)
  }

  show() {
    if (!this.desk.held) return this.recorded()
    return this.ask()
  }

  /** One question at a time: what was moved meanwhile is asked when the answer is here. */
  async ask() {
    const key = JSON.stringify([this.desk.k, this.chosen])
    this.wanted = key
    if (this.asking || this.shown === key) return
    this.asking = true
    const { words, api, k } = this.desk
    try {
      const told = await api.json(`/choice?${new URLSearchParams({ step: k, ...this.chosen })}`)
      if (this.closed) return
      setText(this.problem, '')
      this.shown = key
      this.draw(told)
    } catch (problem) {
      if (this.closed) return
      this.shown = key
      setText(this.problem, problem.message || words.trouble)
      this.problem.dataset.code = problem.code ?? ''
    } finally {
      this.asking = false
    }
    if (this.wanted !== key) this.ask()
  }

  draw({ candidates, stages, drawn, token, settings }) {
    const { words, k } = this.desk
    const columns = columnsOf(stages, settings)
    const name = (id) => `“${visible(candidates.find((one) => one.id === id)?.text ?? '')}”`
    this.table.replaceChildren(this.head(columns), el('tbody', {}, ...candidates.map((candidate, at) => this.row(candidate, at, columns, drawn, token)), this.others(columns)), this.foot(columns))
    const greedy = stages.at(-1).name === 'greedy'
    const said = fill(words.sampling[greedy ? 'drawn_greedy' : 'drawn'], { seed: settings.seed, n: k + 1, word: name(drawn) })
    setText(this.told, `${said} ${drawn === token ? words.sampling.same : fill(words.sampling.other, { word: name(token) })}`)
    Object.assign(this.told.dataset, { word: k, drawn, token, stages: stages.map((stage) => stage.name).join(' '), left: stages.at(-1).left, entropy: stages.at(-1).entropy })
  }

  head(columns) {
    const { words } = this.desk
    return el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, words.sampling.candidate), ...columns.map(({ name, on, skipped, greedy }) =>
      el('th', { scope: 'col', class: on ? '' : 'off', title: words.hints[name] ?? '' }, words.sampling[name],
        el('small', {}, name === 'model' ? '' : greedy ? '0' : skipped ? '–' : this.said(name))))))
  }

  row({ id, text, repeated }, at, columns, drawn, token) {
    const { words, loop, k, onFork } = this.desk
    const listed = loop.words[k].chose.candidates.some((one) => one.id === id) && id !== token
    const why = id === token ? words.fork.is_chosen : words.fork.not_listed
    const kind = `chip${id === token ? ' chosen' : ''}`
    const chip = button(visible(text), () => onFork({ id, text }), { class: kind, dir: 'auto', disabled: !listed, title: listed ? '' : why, 'data-fork-to': id })
    return el('tr', { 'data-id': id, 'data-drawn': id === drawn, 'data-probability': columns.at(-1).stage.probabilities[at] },
      el('th', { scope: 'row' }, chip, ...(repeated ? [el('span', { class: 'again', title: words.sampling.repeated }, '↻')] : [])),
      ...columns.map(({ stage, on, name }) => cell(stage.probabilities[at], on, name)))
  }

  others(columns) {
    const rest = (stage) => Math.max(0, 1 - stage.probabilities.reduce((sum, one) => sum + one, 0))
    return el('tr', { class: 'rest' }, el('th', { scope: 'row' }, this.desk.words.sampling.rest), ...columns.map(({ stage, on, name }) => cell(rest(stage) < 1e-6 ? 0 : rest(stage), on, name)))
  }

  foot(columns) {
    const { words } = this.desk
    const line = (label, told) => el('tr', {}, el('th', { scope: 'row' }, label), ...columns.map(({ stage, on, name }) => el('td', { class: on ? '' : 'off', 'data-of': name }, told(stage))))
    return el('tfoot', {}, line(words.sampling.left, ({ left }) => number(left)), line(words.sampling.entropy, ({ entropy }) => fill(words.sampling.bits, { n: number(entropy, 2) })))
  }

  /** What a recording holds: the model's own ten likeliest. */
  recorded() {
    const { words, loop, k } = this.desk
    const { chose } = loop.words[k]
    const most = Math.max(1e-9, chose.candidates[0]?.probability ?? 1)
    this.table.replaceChildren(el('tbody', {}, ...chose.candidates.map(({ id, text, probability }) =>
      el('tr', { 'data-id': id, 'data-probability': probability, 'data-drawn': id === chose.token.id },
        el('th', { scope: 'row' }, el('span', { class: `chip${id === chose.token.id ? ' chosen' : ''}`, dir: 'auto' }, visible(text))), cell(probability / most, true, 'model', probability)))),
      el('tfoot', {}, el('tr', {}, el('th', { scope: 'row' }, words.sampling.entropy), el('td', {}, fill(words.sampling.bits, { n: number(chose.entropy, 2) }), ' ', tag(this.desk.scene, 'recorded')))))
  }
}

/** The model's own distribution, then every setting in its order: one that is off shows what came before it, faint. */
export function columnsOf(stages, { temperature }) {
  let last = stages[0]
  const greedy = stages.find((stage) => stage.name === 'greedy')
  return [{ name: 'model', stage: last, on: true }, ...STAGES.map((name) => {
    const stage = stages.find((one) => one.name === name) ?? (name === 'temperature' ? greedy : undefined)
    last = stage ?? last
    return { name, stage: last, on: !!stage, greedy: !!stage && stage === greedy, skipped: !stage && !!greedy && temperature < 1e-6 && name !== 'repetition_penalty' }
  })]
}

function cell(width, on, name, value = width) {
  return el('td', { class: on ? '' : 'off', 'data-of': name, 'data-value': value }, el('i', { class: value ? '' : 'cut', style: `width: ${100 * Math.min(1, width)}%` }), el('b', {}, share(value)))
}
