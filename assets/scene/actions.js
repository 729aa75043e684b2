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
    if (!options.source && !this.scene.part) {
      items.push(button(w.new, () => compose.toggle(), { class: 'pill main', 'data-action': 'new' }))
      if (running) items.push(button(w.stop, () => this.stop(), { class: 'pill halt', 'data-action': 'stop' }))
      const book = running || !engine.ready ? null : this.book()
      if (book) {
        items.push(
          button(w.close_book, () => compose.submit(book.closed), {
            class: 'pill',
            'data-action': 'close-book',
            title: w.close_book_why,
          }),
        )
        items.push(
          button(w.change_fact, () => compose.open({ settings: book.changed, fact: book.fact }), {
            class: 'pill',
            'data-action': 'change-fact',
            title: w.change_fact_why,
          }),
        )
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
    const sentence =
      engine === 'failed' && error?.message ? error.message : (errors?.[error?.code] ?? words.engine[engine])
    return el(
      'div',
      { class: 'status', role: 'status', title: sentence },
      `${sentence}${share}`,
      share ? el('progress', { max: 1, value: progress }) : '',
    )
  }

  /**
   * The exam with a passage that is on the desk, edited or not: {closed: settings without the passage, changed:
   * settings with another fact in it, fact: that fact}. Null when the paper on the desk has no passage that we know of.
   */
  book() {
    const { trace, options } = this.scene
    const settings = trace.started?.settings
    if (!settings) return null
    for (const { settings: open, variants = [] } of options.examples) {
      const closed = variants.find((variant) => open.prompt.includes(variant.settings.prompt))?.settings
      const changed = variants.find((variant) => variant.settings !== closed)?.settings
      if (!closed || settings.prompt === closed.prompt || !settings.prompt.includes(closed.prompt)) continue
      const text = changed && settings.prompt === open.prompt ? changed.prompt : settings.prompt
      return {
        closed,
        changed: { ...settings, prompt: text },
        fact: difference(text, text === open.prompt ? (changed?.prompt ?? '') : open.prompt),
      }
    }
    return null
  }

  async stop() {
    const { options, lang, run } = this.scene
    await ask(options.base, `runs/${encodeURIComponent(run)}/stop`, lang, {}).catch(() => {})
  }
}

/** The words of `text` that `other` does not share with it at its beginning and end. */
function difference(text, other) {
  const [mine, theirs] = [text.split(/(?=\s)|(?<=[。，、：])|\b/), other.split(/(?=\s)|(?<=[。，、：])|\b/)]
  let start = 0
  while (start < mine.length && mine[start] === theirs[start]) start++
  let end = 0
  while (end < mine.length - start && end < theirs.length - start && mine.at(-1 - end) === theirs.at(-1 - end)) end++
  return mine
    .slice(start, mine.length - end)
    .join('')
    .trim()
}
