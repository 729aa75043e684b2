/** The answer sheet: words appear as the pen writes them, their ink shows their probability. */
import { el, fill, setText, svg } from '../dom.js'
import { beginsWord, percent, visible } from '../text.js'
import { Guess } from './guess.js'

const SIZES = ['large', 'middle', 'dense']
const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u
const CLINGS = /[\p{M}\u200d\u{1f3fb}-\u{1f3ff}]/u // marks, the joiner, skin tones

/** Whether a cut between two characters would change how they look. */
function inseparable(before, after) {
  if (!before || !after) return false
  return CLINGS.test(after) || before === '\u200d' || (RIGHT_TO_LEFT.test(before) && RIGHT_TO_LEFT.test(after))
}

export class Answer {
  constructor(scene) {
    this.scene = scene
  }

  reset() {
    const { parts } = this.scene
    this.words = []
    this.united = 0
    this.kept = null
    this.pen = svg(
      'svg',
      { class: 'pen', viewBox: '0 0 48 48', 'aria-hidden': 'true' },
      svg('path', { d: 'M0 48 L5 34 L14 43Z', fill: 'var(--ink)' }),
      svg('path', { d: 'M5 34 L34 5 L43 14 L14 43Z', fill: 'var(--decode)' }),
      svg('path', { d: 'M34 5 L37 2 Q39 0 41 2 L46 7 Q48 9 46 11 L43 14Z', fill: 'var(--ink)' }),
      svg('path', { d: 'M9 38 L38 9', stroke: 'var(--paper)', 'stroke-opacity': 0.45, 'stroke-width': 2 }),
    )
    this.start = el('span', { class: 'written' }, '\u200b')
    this.guess = new Guess(this.scene)
    parts.lines.classList.remove('guessing')
    parts.lines.replaceChildren(this.start, this.pen, this.guess.root)
    parts.lines.dataset.size = 'large'
    this.fitted = ''
    this.shown = ''
  }

  /** One element per word: tokens that share a character are one. */
  grow() {
    const { trace, words, parts } = this.scene
    while (this.words.length < trace.words.length) {
      const word = trace.words[this.words.length]
      const last = this.words[this.words.length - 1]
      if (word.joined && last) {
        this.join(last, word.token.stop, word.index)
        continue
      }
      const end = word.token.special
      const stroke = el('span', { class: 'stroke', dir: 'auto' }, end ? words.answer.end : text(word))
      const share = el('span', { class: 'share' }, end ? '' : percent(word.probability))
      const element = el(
        'span',
        {
          class: `written${end ? ' end' : ''}${word.drafted ? ' drafted' : ''}`,
          tabindex: 0,
          'data-word': word.index,
          title: word.drafted ? words.answer.drafted : null,
          style: `--sure:${Math.round(word.probability * 100)}%`,
        },
        stroke,
        share,
      )
      element.style.visibility = 'hidden'
      this.words.push({
        element,
        stroke,
        from: word.token.start,
        until: word.token.stop,
        first: word.index,
        whole: word.index,
        end,
        ink: -1,
      })
      if (!end && /^\s/.test(word.token.text)) parts.lines.insertBefore(document.createTextNode(' '), this.pen)
      this.home(word, end).append(element)
      if (word.token.text.endsWith('\n')) {
        parts.lines.insertBefore(el('br'), this.pen)
        this.kept = null
      }
    }
  }

  /** Parts of one word stay on one line. */
  home({ token, index }, end) {
    const before = this.scene.trace.words[index - 1]?.token.text
    if (!this.kept || end || this.kept.childElementCount > 7 || beginsWord(token.text, before)) {
      this.kept = el('span', { class: 'kept' })
      this.scene.parts.lines.insertBefore(this.kept, this.pen)
    }
    return this.kept
  }

  /** Word `index` belongs to `group`: they are drawn as one. */
  join(group, until, index) {
    this.words[index] = group
    Object.assign(group, { until, whole: index, text: null })
  }

  /** What is one sign to a reader (an emoji of several, a letter with its marks, joined-up script) is one element. */
  unite(characters) {
    for (; this.united < this.words.length; this.united++) {
      const [group, word] = [this.words[this.united - 1], this.words[this.united]]
      if (word.until > characters.length && this.scene.trace.last.phase !== 'done') return
      if (
        !group ||
        group === word ||
        group.end ||
        word.end ||
        !inseparable(characters[word.from - 1], characters[word.from])
      )
        continue
      word.element.remove()
      for (let index = word.first; index <= word.whole; index++) this.join(group, word.until, index)
    }
  }

  /** The largest writing with which the whole answer is on the sheet; a long answer scrolls in the smallest. */
  fit() {
    const { lines } = this.scene.parts
    const { over } = this.scene
    const key = [this.words.length, this.scene.parts.small.hidden, this.scene.layout].join()
    if (key === this.fitted) return
    // While words are added the writing only gets smaller; on a new sheet or another size of window it starts large.
    const first = this.fitted && !over ? SIZES.indexOf(lines.dataset.size) : 0
    this.fitted = key
    for (const size of SIZES.slice(first)) {
      if (lines.dataset.size !== size) lines.dataset.size = size
      if (lines.scrollHeight <= lines.clientHeight + 1) break
    }
    if (lines.dataset.size === 'large') this.spread()
  }

  /** Under short words there is no room for every probability: one that would cover another is left to the pointer. */
  spread() {
    const places = [...new Set(this.words)].map(({ element }) => {
      const { offsetWidth: width } = element.lastChild
      return { element, width, line: element.offsetTop, left: element.offsetLeft + (element.offsetWidth - width) / 2 }
    })
    let before = null
    for (const { element, width, line, left } of places) {
      const crowded = before && line === before.line && left < before.right + width / 12
      element.toggleAttribute('data-crowded', Boolean(crowded))
      if (!crowded && width) before = { line, right: left + width }
    }
  }

  draw(moment) {
    const { view, parts } = this.scene
    this.grow()
    if (this.united < this.words.length) this.unite(this.scene.trace.characters)
    this.drawSmall(moment)
    this.fit()
    const key = [
      moment.words,
      moment.ink,
      moment.state.text.length,
      view.word,
      moment.phase,
      moment.guess && [moment.guess.from, moment.guess.judged],
      this.words.length,
      parts.lines.dataset.size,
    ].join()
    if (key === this.shown) return
    this.shown = key
    const characters = this.characters(moment.state.text)
    this.turn(moment.state.text)
    const seen = new Set(this.words)
    for (const word of seen) this.drawWord(word, moment, characters)
    this.drawPen(moment)
    this.guess.draw(moment, (this.words[moment.words - 1] ?? { element: this.start }).element, this.pen, this.leftward)
  }

  /** Beside a finished answer stands why it is wrong, or may be; beside one known to be right, nothing. */
  drawSmall({ phase, state }) {
    const { parts, trace, words, options, known } = this.scene
    const model = options.models?.[trace.facts?.model]
    const right = known(trace.started?.settings.prompt)?.right?.length
      ? known(trace.started.settings.prompt).right.some((answer) => state.text.includes(answer))
      : null
    parts.small.hidden = !(phase === 'end' && trace.words.length > 0 && model) || right === true
    if (parts.small.hidden) return
    const parameters = new Intl.NumberFormat(words.lang, {
      notation: 'compact',
      compactDisplay: 'long',
      maximumSignificantDigits: 3,
    }).format(model.parameters)
    setText(parts.small, fill(right === false ? words.answer.wrong : words.answer.small, { ...model, parameters }))
  }

  /** An answer that begins in a script from right to left is written that way. */
  turn(text) {
    const first = text.match(/\p{L}/u)?.[0] ?? ''
    this.leftward = RIGHT_TO_LEFT.test(first)
    const direction = this.leftward ? 'rtl' : 'ltr'
    if (this.scene.parts.lines.dir !== direction) this.scene.parts.lines.dir = direction
  }

  characters(text) {
    if (this.text !== text) {
      this.text = text
      this.list = Array.from(text)
    }
    return this.list
  }

  drawWord(word, { words, ink, state }, characters) {
    const present = word.first < words
    const last = this.scene.trace.words[Math.min(word.whole, words - 1)]
    const half = present && !word.end && characters.length < last?.token.stop && state.phase !== 'done'
    const text = word.end ? null : shown(characters.slice(word.from, word.until).join(''))
    const amount = !present ? 0 : Math.min(word.whole, words - 1) === words - 1 ? ink : 1
    if (text !== null && word.text !== text + (half ? '…' : '')) {
      word.text = text + (half ? '…' : '')
      word.ink = -1
      word.stroke.replaceChildren(text, ...(half ? [halfStroke(this.scene.words.answer.half)] : []))
    }
    word.element.classList.toggle('chosen', this.scene.view.word >= word.first && this.scene.view.word <= word.whole)
    if (word.ink === amount) return
    word.ink = amount
    word.element.style.visibility = amount > 0 || (word.end && present) ? 'visible' : 'hidden'
    const [right, left] = this.leftward ? [-5, 100 - amount * 100] : [100 - amount * 100, -5]
    word.stroke.style.clipPath = amount < 1 && !word.end ? `inset(-10% ${right}% -30% ${left}%)` : ''
    word.element.lastChild.style.opacity = amount >= 0.6 && word.text ? 1 : 0
  }

  drawPen({ phase, words, ink, step }) {
    const { lines } = this.scene.parts
    const last = this.words[words - 1]
    this.pen.style.opacity = phase === 'end' || last?.end ? 0 : words ? 1 : 0.3
    const at = (last ?? { element: this.start }).element
    const done = last && ink < 1 ? ink : 1
    const x = at.offsetLeft + (this.leftward ? at.offsetWidth * (1 - done) - 2 : at.offsetWidth * done + 2)
    const y = at.offsetTop + at.offsetHeight * 0.82 - (step >= 0 ? 0 : 4)
    this.pen.style.transform = `translate(${x}px, ${y - this.pen.clientHeight}px)`
    if (last && lines.scrollHeight > lines.clientHeight)
      lines.scrollTop = Math.max(0, at.offsetTop + at.offsetHeight * 1.6 - lines.clientHeight)
    else lines.scrollTop = 0
  }
}

const text = ({ token, joined }) => (joined || /⟨/.test(token.text) ? '' : shown(token.text))

/** Text on the answer sheet: gaps stay gaps, everything else unseen becomes visible. */
function shown(text) {
  const trimmed = text.replace(/^ (?=[^ ])/, '')
  return / {2,}|^ | $/.test(trimmed) ? visible(trimmed).replaceAll('·', '\u00a0') : visible(trimmed)
}

function halfStroke(label) {
  return svg(
    'svg',
    { class: 'half', viewBox: '0 0 20 16', role: 'img', 'aria-label': label },
    svg('path', { d: 'M2 5h9M7 1c0 6-2 10-6 13M12 9l5 5' }),
  )
}
