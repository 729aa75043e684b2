/** The buttons beside the rail: a new exam, stop, and what can be done to an open book. */
import { button, el } from './dom.js'
import { ask } from './source.js'
import { percent } from './text.js'

export class Actions {
  constructor(scene) {
    this.scene = scene
  }

  draw() {
    const { parts, words, options, running, compose, engine } = this.scene
    const w = words.compose
    const items = []
    if (!options.source) {
      items.push(button(w.new, () => compose.toggle(), { class: 'pill main', 'data-action': 'new' }))
      if (running) items.push(button(w.stop, () => this.stop(), { class: 'pill halt', 'data-action': 'stop' }))
      const book = running ? null : this.book()
      if (book) {
        items.push(button(w.close_book, () => compose.submit({ ...book.settings, prompt: book.question }), { class: 'pill', 'data-action': 'close-book', title: w.close_book_why, disabled: !engine.ready }))
        items.push(button(w.change_fact, () => compose.open({ settings: book.settings, fact: book.fact, passage: book.passage }), { class: 'pill', 'data-action': 'change-fact', title: w.change_fact_why }))
      }
      if (!engine.ready && engine.health) items.push(this.status(engine.health))
    }
    const key = items.map((item) => item.outerHTML).join() + this.scene.run
    if (key === this.key) return
    this.key = key
    parts.actions.replaceChildren(...items)
  }

  status({ engine, progress, error }) {
    const { words, errors } = this.scene
    const share = progress === null || progress === undefined ? '' : ` ${percent(progress)}`
    const sentence = engine === 'failed' && error?.message ? error.message : errors?.[error?.code] ?? words.engine[engine]
    return el('div', { class: 'status', role: 'status' }, `${sentence}${share}`, share ? el('progress', { max: 1, value: progress }) : '')
  }

  /** The passage and the question of the run on the desk, when it is an exam with a passage (edited or not). */
  book() {
    const { trace, options } = this.scene
    const settings = trace.started?.settings
    if (!settings) return null
    for (const { prompt, passage, fact } of options.examples) {
      if (!passage) continue
      const question = prompt.replace(passage, '').trim()
      if (question && settings.prompt !== question && settings.prompt.includes(question)) {
        const own = settings.prompt.replace(question, '').trim()
        return { settings, question, passage: own, fact: fact && own.includes(fact) ? fact : own }
      }
    }
    return null
  }

  async stop() {
    const { options, lang, run } = this.scene
    await ask(options.base, `runs/${encodeURIComponent(run)}/stop`, lang, {}).catch(() => {})
  }
}
