/** “What if it had chosen this one instead”: the run goes on from there with another word, and both answers stand side by side. */
import { owner } from '../../scene/compose/compose.js'
import { button, el, fill, setText } from '../../scene/dom.js'
import { bytesOf } from '../../scene/trace/norms.js'
import { ask, ServiceSource } from '../../scene/source.js'
import { visible } from '../../scene/text.js'
import { loopOf } from './loop.js'

export class Fork {
  /** `desk`: {words, errors, base, lang, run, loop, k, held, onOpen(run)}. */
  constructor(desk) {
    this.desk = desk
    this.told = el('p', { 'data-fork': true, 'aria-live': 'polite' })
    this.sides = el('div', { class: 'sides' })
    this.root = el('div', {}, this.told, this.sides)
  }

  close() {
    this.closed = true
    this.stop?.()
  }

  /** Go on from before word `k` with `candidate` {id, text}. A fork under way is left to itself. */
  async sit({ id: token, text }) {
    const { words, base, lang, run, loop, k } = this.desk
    this.stop?.()
    const word = `“${visible(text)}”`
    setText(this.told, fill(words.fork.writing, { word }))
    Object.keys(this.told.dataset).forEach((name) => name !== 'fork' && delete this.told.dataset[name])
    const was = this.side(words.fork.was, 'was')
    const now = this.side(fill(words.fork.now, { word }), 'now')
    this.sides.replaceChildren(was.root, now.root)
    write(was, loop, k)
    setText(was.facts, fill(words.fork[loop.reused ? 'facts' : 'facts_was'], factsOf(loop)))
    this.turn = (this.turn ?? 0) + 1
    const { turn } = this
    try {
      const { id } = await ask(base, 'runs', lang, { ...loop.started.settings, fork: { run, kept: k, token }, owner: owner(), keep: true })
      if (turn !== this.turn || this.closed) return
      const events = []
      this.stop = new ServiceSource(base, id).events(0, (more) => {
        events.push(...more)
        this.tell(now, id, k, loopOf(events))
      }, () => {}, (state) => state === 'refused' && setText(this.told, words.trouble))
    } catch (problem) {
      if (turn !== this.turn || this.closed) return
      this.sides.replaceChildren()
      setText(this.told, problem.message || words.trouble)
      this.told.dataset.code = problem.code ?? ''
    }
  }

  side(title, name) {
    const text = el('p', { class: 'answer', dir: 'auto' })
    const facts = el('p', { class: 'caption' })
    return { text, facts, root: el('div', { class: 'side', 'data-side': name }, el('h4', {}, title), text, facts) }
  }

  tell(now, id, k, fork) {
    if (this.closed) return
    const { words, errors, onOpen } = this.desk
    const { finished, reused } = fork
    if (finished && (finished.reason === 'error' || !reused)) {
      this.sides.replaceChildren()
      setText(this.told, fill(errors[finished.code] ?? words.trouble, Object.fromEntries(finished.values ?? [])))
      this.told.dataset.code = finished.code
      return
    }
    if (!reused) return
    write(now, fork, k)
    setText(now.facts, fill(words.fork.facts, factsOf(fork)))
    Object.assign(this.told.dataset, {
      run: id, parent: reused.run, reused: reused.stop, prefills: fork.prefills, passes: fork.passes, kept: reused.written.length,
      ids: fork.words.map((word) => word.token.id).join(' '), text: fork.text, reason: finished?.reason ?? '',
    })
    if (!finished) return
    setText(this.told, fill(words.fork.copied, { n: reused.stop }))
    if (!now.opened) now.root.append((now.opened = button(words.fork.open, () => onOpen(id), { class: 'pill', 'data-do': 'open-fork' })))
  }
}

const factsOf = (loop) => ({ reused: loop.reused?.stop ?? 0, prefills: loop.prefills, steps: loop.passes, prompt: loop.prompt })

/** An answer: what both have in common faint, the word where they part marked. A half character stays with its word. */
function write({ text }, loop, k) {
  const pieces = [[], [], []]
  loop.words.forEach(({ token }, at) => !token.special && pieces[Math.sign(at - k) + 1].push(...bytesOf(token.bytes)))
  const read = new TextDecoder('utf-8')
  const [kept, put, rest] = pieces.map((bytes, at) => read.decode(Uint8Array.from(bytes), { stream: at < 2 }))
  const special = loop.words[k]?.token.special ? visible(loop.words[k].token.text) : ''
  text.replaceChildren(el('span', { class: 'kept' }, kept), el('mark', {}, put || special), rest)
}
