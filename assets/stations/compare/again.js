/** Sit the first run's exam once more with something changed; the new run is put beside it. */
import { owner } from '../../scene/compose/compose.js'
import { button, el, fill, setText } from '../../scene/dom.js'
import { fields, read, write } from '../../scene/compose/fields.js'
import { ask } from '../../scene/source.js'

export class Again {
  /** `options`: the station's; `onRun(id)` hears of the new run. */
  constructor({ words, options, onRun }) {
    this.words = words
    this.options = options
    this.onRun = onRun
    const { again } = words
    const change = (name, make) => button(again[name], () => this.sit(make()), { class: 'pill', 'data-again': name, disabled: true })
    this.quick = [
      change('same', () => ({})),
      change('warm', () => ({ temperature: 1, seed: Math.floor(Math.random() * 2 ** 31) })),
      change('greedy', () => ({ temperature: 0 })),
      change('closed', () => this.closed),
    ]
    this.fields = fields(words.compose, options.limits)
    this.start = button(again.start, () => this.sit(read(this.fields, this.settings.prompt)), { class: 'pill main', 'data-again': 'start', disabled: true })
    this.told = el('p', { class: 'hint', role: 'status' })
    this.root = el('div', {}, el('p', {}, again.lead), el('div', { class: 'row' }, ...this.quick),
      el('details', {}, el('summary', {}, again.more), this.fields.box, el('div', { class: 'row' }, this.start)), this.told)
    this.models()
  }

  async models() {
    const { models } = await ask(this.options.base, 'models', this.options.lang).catch(() => ({ models: [] }))
    this.present = models.filter((model) => model.present)
    this.fields.fillModels(this.present, this.settings?.model)
  }

  /** The first run's settings have come, or are another run's. */
  draw(started) {
    if (started === this.started) return
    this.started = started
    this.settings = started?.settings
    const closed = started && this.book(started.settings.prompt)
    this.closed = closed
    for (const one of [...this.quick, this.start]) one.disabled = !started
    const [, , greedy, close] = this.quick
    greedy.hidden = !started || started.settings.temperature === 0
    close.hidden = !closed
    if (!started) return
    if (this.present) this.fields.fillModels(this.present, started.settings.model || started.facts.model)
    write(this.fields, { ...started.settings, model: started.settings.model || started.facts.model })
  }

  /** The same question without its passage, where it is one of ours; else nothing. */
  book(prompt) {
    for (const { settings, variants } of this.options.examples) {
      const closed = variants.find((variant) => settings.prompt.includes(variant.settings.prompt))?.settings
      if (closed && prompt !== closed.prompt && prompt.includes(closed.prompt)) return { prompt: closed.prompt }
    }
    return null
  }

  async sit(changes) {
    const { words, options, settings } = this
    setText(this.told, words.again.running)
    try {
      const { id } = await ask(options.base, 'runs', options.lang, { ...settings, fork: null, ...changes, owner: owner() })
      if (this.closing) return
      setText(this.told, '')
      this.onRun(id)
    } catch ({ code, values, message }) {
      setText(this.told, message || fill(options.errors[code] ?? words.unreachable, values))
    }
  }

  close() {
    this.closing = true
  }
}
