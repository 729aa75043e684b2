/** Every reason to stop, caused on purpose: a real run each, and what its trace says about its end. */
import { owner } from '../../scene/compose/compose.js'
import { button, el, fill, setText } from '../../scene/dom.js'
import { ask, ServiceSource } from '../../scene/source.js'
import { visible } from '../../scene/text.js'
import { loopOf } from './loop.js'
import { time } from './times.js'

export class Endings {
  /** `desk`: {words, errors, base, lang, endings: settings by reason, onOpen(run)}. */
  constructor(desk) {
    this.desk = desk
    this.stops = new Set()
    this.root = el('div', { class: 'endings' }, ...Object.keys(desk.endings).map((name) => this.card(name)))
  }

  close() {
    this.stops.forEach((stop) => stop())
  }

  card(name) {
    const { words, endings } = this.desk
    const told = el('div', { class: 'told', 'aria-live': 'polite' })
    const go = button(words.endings.go, () => this.sit(name, card, go, told), { class: 'pill main', 'data-do': `end-${name}` })
    const card = el('article', { 'data-ending': name }, el('h3', {}, words.ending[name]), el('p', {}, words.how[name]),
      el('blockquote', { dir: 'auto' }, endings[name].prompt), go, told)
    return card
  }

  async sit(name, card, go, told) {
    const { words, base, lang, endings } = this.desk
    go.disabled = true
    card.dataset.reason = ''
    const text = el('p', { class: 'answer', dir: 'auto' })
    const line = el('p', {}, words.endings.waiting)
    told.replaceChildren(text, line)
    let halt = null
    try {
      const { id } = await ask(base, 'runs', lang, { ...endings[name], owner: owner(), keep: true })
      if (name === 'stopped') {
        halt = button(words.endings.stop, () => ask(base, `runs/${id}/stop`, lang, {}).catch((problem) => setText(line, problem.message || words.trouble)), { class: 'pill halt', 'data-do': 'halt' })
        told.append(halt)
      }
      const events = await this.watch(id, (events) => {
        const { text: written, words: chosen } = loopOf(events)
        setText(text, written)
        if (chosen.length) setText(line, words.endings.running)
      })
      if (!this.closed) this.tell(name, card, told, id, loopOf(events))
    } catch (problem) {
      setText(line, problem.message || words.trouble)
    }
    halt?.remove()
    go.disabled = false
  }

  watch(id, onEvents) {
    return new Promise((resolve, reject) => {
      const events = []
      const stop = new ServiceSource(this.desk.base, id).events(0, (more) => {
        events.push(...more)
        onEvents(events)
      }, () => {
        this.stops.delete(stop)
        resolve(events)
      }, (state) => state === 'refused' && reject({}))
      this.stops.add(stop)
    })
  }

  tell(name, card, told, id, loop) {
    const { words, errors, onOpen } = this.desk
    const { reason, code, values, at } = loop.finished
    const why = fill(errors[code] ?? '', Object.fromEntries(values ?? []))
    const gaps = { n: loop.words.length, at: time(at), why, word: `“${visible(loop.words.at(-1)?.token.text ?? '')}”` }
    const lines = [fill(words.ended[reason] ?? '', gaps), ...(reason === 'out_of_memory' ? [why] : []), ...(reason === name ? [] : [words.endings.otherwise])]
    Object.assign(card.dataset, { reason, run: id, tokens: loop.words.length, code })
    told.replaceChildren(el('p', { class: 'answer', dir: 'auto' }, loop.text || words.endings.nothing),
      ...lines.filter(Boolean).map((line) => el('p', {}, line)),
      el('p', { class: 'caption' }, el('code', {}, fill(words.endings.reason, { reason: code ? `${reason} · ${code}` : reason })), ' '),
      button(words.endings.open, () => onOpen(id), { class: 'pill' }))
  }
}
