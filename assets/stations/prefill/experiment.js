/**
 * The honest experiment: two papers that differ in one late word are really read, and everything before that word is
 * compared. `it` comes before `round` or `tilted`: whatever the model makes of `it`, it made without having read that.
 */
import { owner } from '../../scene/compose/compose.js'
import { button, el, fill, setText } from '../../scene/dom.js'
import { ServiceSource, ask } from '../../scene/source.js'
import { visible } from '../../scene/text.js'
import { RunApi } from '../shared/api.js'

const FROM = ' it'
const TO = [' orange', ' table']

export class Experiment {
  /** `desk`: {words, base, lang, papers: {round, tilted} (settings), onOpen(run)}. */
  constructor(desk) {
    this.desk = desk
    this.done = {}
    this.verdict = el('p', { class: 'verdict', 'data-verdict': true, 'aria-live': 'polite' })
    const sides = Object.keys(desk.papers).map((name) => this.side(name))
    this.root = el('div', {}, el('div', { class: 'sides' }, ...sides), this.verdict)
  }

  close() {
    this.closed = true
    this.stop?.()
  }

  side(name) {
    const { words, papers } = this.desk
    const told = el('div', { class: 'told' })
    const start = button(words.experiment[name], () => this.sit(name, start, told), { class: 'pill main', 'data-do': name })
    return el('div', { class: 'side', 'data-side': name }, el('blockquote', { dir: 'auto' }, papers[name].prompt), start, told)
  }

  async sit(name, start, told) {
    const { desk } = this
    start.disabled = true
    setText(told, desk.words.experiment.running)
    try {
      const { id } = await ask(desk.base, 'runs', desk.lang, { ...desk.papers[name], owner: owner(), keep: true })
      const events = await this.watch(id)
      if (this.closed) return
      const run = await this.look(id, events)
      this.done[name] = run
      this.tell(told, run)
      await this.compare()
    } catch (problem) {
      setText(told, problem.message || desk.words.trouble)
    }
    start.disabled = false
  }

  watch(id) {
    return new Promise((resolve, reject) => {
      const events = []
      this.stop = new ServiceSource(this.desk.base, id).events(0, (more) => events.push(...more), () => resolve(events),
        (state) => state === 'refused' && reject({}))
    })
  }

  /** What a finished run says, and which head looks most from `it` to each of the two things. */
  async look(id, events) {
    const started = events.find((event) => event.type === 'started')
    const finished = events.at(-1)
    if (!started || finished.code || !events.some((event) => event.type === 'chose')) {
      throw { message: finished.code ? fill(this.desk.errors[finished.code] ?? '', Object.fromEntries(finished.values)) : '' }
    }
    const at = (text) => started.prompt.findIndex((token) => token.text === text)
    const api = new RunApi(this.desk.base, id, this.desk.lang)
    const looks = []
    for (const text of TO) {
      if (at(FROM) < 0 || at(text) < 0) continue
      const { heads } = await api.heads(at(FROM), at(text))
      looks.push({ text, ...heads[0] })
    }
    const text = events.filter((event) => event.type === 'wrote').map((event) => event.text).join('')
    return { id, api, text, looks, it: at(FROM), ids: started.prompt.map((token) => token.id) }
  }

  tell(told, { id, text, looks }) {
    const { words, onOpen } = this.desk
    told.replaceChildren(
      el('p', { class: 'answer', dir: 'auto', 'data-answer': text }, text),
      ...looks.map((look) => el('p', { 'data-look': visible(look.text), 'data-weight': look.weight },
        fill(words.experiment.look, { word: visible(look.text), layer: look.layer + 1, head: look.head + 1, weight: `${(100 * look.weight).toFixed(1)}%` }))),
      button(words.experiment.open, () => onOpen(id), { class: 'pill' }))
  }

  /** Both were read: every weight of the best head up to where the papers part. */
  async compare() {
    const runs = Object.values(this.done)
    if (runs.length < 2) return
    const { words } = this.desk
    const [one, two] = runs
    const same = one.ids.findIndex((id, position) => id !== two.ids[position])
    const { layer, head } = one.looks[0]
    const [first, second] = await Promise.all(runs.map((run) => run.api.map({ layer, head })))
    let most = 0
    for (let row = 0; row < same; row++) {
      for (let column = 0; column <= row; column++) {
        most = Math.max(most, Math.abs(first.data[row * first.columns + column] - second.data[row * second.columns + column]))
      }
    }
    const difference = `${((100 * most) / 255).toFixed(1)}%`
    setText(this.verdict, fill(words.experiment.verdict, { n: same, layer: layer + 1, head: head + 1, difference, it: one.it + 1 }))
    Object.assign(this.verdict.dataset, { same, difference: most / 255 })
  }
}
