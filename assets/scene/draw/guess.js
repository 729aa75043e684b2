/**
 * Guessed words beside the pen: in pencil while a step reads them, and once it is over those that were refused, struck
 * through. They lie over the lines and take no room of their own, so that nothing moves when they go.
 */
import { el } from '../dom.js'
import { visible } from '../text.js'

export class Guess {
  constructor(scene) {
    this.scene = scene
    this.root = el('span', { class: 'guesses', 'aria-hidden': 'true' })
    this.shown = ''
  }

  /** `at`: the last written word's element; `leftward`: the answer runs from right to left. */
  draw({ guess, words, ink }, at, pen, leftward) {
    const { lines } = this.scene.parts
    const key = guess ? [guess.from, guess.judged, words, ink >= 1, lines.dataset.size, this.scene.layout, lines.clientHeight, leftward].join() : ''
    if (key === this.shown) return
    this.shown = key
    lines.classList.toggle('guessing', Boolean(guess) && !guess.judged)
    this.root.replaceChildren(...(guess ? this.tokens(guess, words) : []))
    if (!this.root.childElementCount) return
    const { lineHeight, paddingLeft, paddingRight } = getComputedStyle(lines)
    const pitch = parseFloat(lineHeight)
    const top = at.offsetTop + (at.offsetHeight - pitch) / 2
    const over = guess.judged && words >= guess.from + guess.accepted // the pen stays where it is: what is struck is beside it
    const room = over ? pen.clientWidth : 0.1 * pitch
    const indent = leftward ? lines.clientWidth - parseFloat(paddingRight) - at.offsetLeft : at.offsetLeft + at.offsetWidth - parseFloat(paddingLeft)
    Object.assign(this.root.style, { top: `${top}px`, textIndent: `${Math.max(0, indent) + room}px`, maxHeight: `${Math.max(pitch, lines.scrollTop + lines.clientHeight - top)}px` })
  }

  /** In pencil are those of which nothing is known yet, and those accepted that the pen has not come to; struck, the refused. */
  tokens({ drafts, accepted, judged, from }, words) {
    const { trace } = this.scene
    const own = trace.words[from + accepted]?.token.id
    const first = judged && drafts[accepted]?.id === own && words > from + accepted ? accepted + 1 : accepted
    const done = judged ? Math.min(Math.max(0, words - from), first) : 0
    const gap = (text) => (/^ [^ ]/.test(text) ? ' ' : '') // outside, or a line would end with a stroke through nothing
    return drafts.slice(done).flatMap(({ text }, i) => [gap(text), el('span', { class: judged && done + i >= first ? 'struck' : 'pencil' }, visible(text), text.endsWith('\n') ? '\n' : '')])
  }
}
