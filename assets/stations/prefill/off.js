/** Switch heads off and sit the paper again: does the answer change? Both answers stand side by side. */
import { button, el, fill, setText, tag } from '../../scene/dom.js'
import { said, sit } from '../shared/sitting.js'

const SOME = 5

export class Off {
  /**
   * `desk`: {words, scene (the scene's words), base, lang, errors, facts, settings, events, run, recorded, choice,
   * ranking, onPage}.
   */
  constructor(desk) {
    this.desk = desk
    const { words } = desk
    this.heads = new Map(desk.settings.heads_off.map((head) => [head.join('.'), head]))
    this.list = el('ul', { class: 'offs', 'data-off': '' })
    const add = (name, make) => button(words.off[name], () => this.add(make()), { class: 'pill', 'data-do': `off-${name}` })
    this.buttons = {
      shown: add('shown', () => [[desk.choice.layer, desk.choice.head]]),
      strongest: add('strongest', () => desk.ranking.found.heads.slice(0, SOME).map(({ layer, head }) => [layer, head])),
      random: add('random', () => this.some()),
    }
    this.clear = button(words.off.clear, () => this.add([], true), { class: 'pill', 'data-do': 'off-clear' })
    this.go = button(words.off.go, () => this.run(), { class: 'pill main', 'data-do': 'off-go' })
    this.told = el('p', { class: 'verdict', 'data-changed': '', 'aria-live': 'polite' })
    this.sides = el('div', { class: 'sides' })
    this.both = el('p')
    this.root = el('div', {}, el('p', {}, words.off.lead),
      el('div', { class: 'row' }, ...Object.values(this.buttons), this.clear), this.list,
      el('div', { class: 'row' }, this.go), this.told, this.sides, this.both, el('p', { class: 'caption' }, words.off.honest))
    this.draw()
  }

  close() {
    this.closed = true
    this.leave?.()
  }

  /** Heads that are not off yet, by chance: what they do is the measure of what the chosen ones do. */
  some() {
    const { layers, heads } = this.desk.facts
    const free = Array.from({ length: layers * heads }, (_, i) => [Math.floor(i / heads), i % heads])
      .filter((head) => !this.heads.has(head.join('.')))
    return Array.from({ length: Math.min(SOME, free.length) }, () => free.splice(Math.floor(Math.random() * free.length), 1)[0])
  }

  add(heads, anew = false) {
    if (anew) this.heads.clear()
    for (const head of heads) this.heads.set(head.join('.'), head)
    this.draw()
  }

  /** Anew when another head is on show, or another pair is ranked. */
  draw() {
    const { words, choice, ranking } = this.desk
    const name = ([layer, head]) => fill(words.pair.head, { layer: layer + 1, head: head + 1 })
    const { shown, strongest } = this.buttons
    shown.disabled = choice.head === null || this.busy
    setText(shown, choice.head === null ? words.off.mean : fill(words.off.shown, { head: name([choice.layer, choice.head]) }))
    strongest.disabled = !ranking.found?.heads.length || this.busy
    this.list.replaceChildren(...[...this.heads].map(([key, head]) =>
      el('li', {}, name(head), button('×', () => { this.heads.delete(key); this.draw() }, { 'aria-label': fill(words.off.remove, { head: name(head) }) }))))
    this.list.dataset.off = [...this.heads.keys()].join(' ')
    this.clear.hidden = !this.heads.size
    this.go.disabled = !this.heads.size || this.busy
  }

  async run() {
    const { desk } = this
    const { words } = desk
    const off = [...this.heads.values()]
    const plain = { ...desk.settings, fork: null, heads_off: [] }
    this.wait(true)
    try {
      const start = (leave) => { this.leave = leave }
      if (!this.plain) {
        setText(this.told, words.off.first)
        const here = !desk.recorded && !desk.settings.heads_off.length && !desk.settings.fork
        this.plain = here ? { id: desk.run, ...said(desk.events) } : await sit(desk, plain, start)
      }
      setText(this.told, fill(words.off.running, { n: off.length }))
      const without = await sit(desk, { ...plain, heads_off: off }, start)
      if (!this.closed) this.show(this.plain, without, off)
    } catch ({ message }) {
      setText(this.told, message || words.trouble)
    }
    this.wait(false)
  }

  wait(busy) {
    this.busy = busy
    this.draw()
  }

  show(plain, without, off) {
    const { words, scene } = this.desk
    const at = plain.ids.findIndex((id, i) => id !== without.ids[i])
    const same = at < 0 && plain.ids.length === without.ids.length
    const word = at < 0 ? Math.min(plain.ids.length, without.ids.length) : at
    Object.assign(this.told.dataset, { changed: !same, from: same ? '' : word + 1, heads: off.length })
    setText(this.told, fill(words.off[same ? 'same' : 'changed'], { n: off.length, word: word + 1 }))
    const side = (name, title, run) => el('div', { class: 'side', 'data-side': name, 'data-run': run.id },
      el('h3', {}, title, ' ', tag(scene, 'measured', true)), el('p', { class: 'answer', dir: 'auto', 'data-answer': run.text }, run.text || words.off.nothing))
    this.sides.replaceChildren(side('all', words.off.all, plain), side('off', fill(words.off.without, { n: off.length }), without))
    this.both.replaceChildren(this.link({ run: plain.id, beside: without.id }))
  }

  /** A real link to both on one clock; a plain click stays in this session. */
  link(runs) {
    const { words, onPage } = this.desk
    const query = { ...Object.fromEntries(new URLSearchParams(location.search)), ...runs }
    for (const name of ['at', 'layer', 'head']) delete query[name]
    return el('a', {
      href: `/compare?${new URLSearchParams(query)}`, 'data-do': 'off-compare', onclick: (event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
        event.preventDefault()
        onPage({ name: 'compare', query })
      },
    }, words.off.compare)
  }
}
