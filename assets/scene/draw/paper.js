/** The exam paper: the prompt's tokens as chips. Long papers are built a slice per frame. */
import { el, fill, setText, tag } from '../dom.js'
import { beginsWord, number, percent, visible } from '../text.js'
import { shade } from './back.js'
import { tears } from './torn.js'

const SLICE = 200 // chips built in one frame
const BLOCK = 120 // tokens in one block that the browser may skip, then on to the end of the sentence

export class Paper {
  constructor(scene) {
    this.scene = scene
    this.chips = []
    this.lit = []
    this.reading = ''
    this.built = 0
  }

  /** Lays the sheet out anew for the trace's prompt. */
  reset() {
    const { parts, words, trace } = this.scene
    cancelAnimationFrame(this.frame)
    this.chips = []
    this.lit = []
    this.reading = ''
    this.torn = ''
    this.built = 0
    this.focused = null
    parts.paper.replaceChildren()
    parts.paper.scrollTop = 0
    parts.tokens.textContent = trace.started ? fill(words.paper.tokens, { n: number(trace.prompt) }) : ''
    if (!trace.started) return
    const own = trace.started.own_stop - trace.started.own_start
    parts.paper.dataset.size = own <= 36 ? 'large' : own <= 90 ? 'middle' : 'dense'
    this.sections = this.split(trace.started)
    this.build()
  }

  /** Which tokens are the template's rules, the person's question with the marks around it, and the turn to answer. */
  split({ prompt, own_start, own_stop }) {
    const marks = prompt.map((token) => token.special)
    const lead = own_start > 0 ? marks.lastIndexOf(true, own_start - 1) : -1
    const from = lead >= 0 && own_start - lead <= 8 ? lead : own_start
    const turn = marks.lastIndexOf(true)
    const to = turn > own_stop && prompt.length - turn <= 8 ? turn : prompt.length
    return [
      ['rules', 0, from],
      ['question', from, to],
      ['turn', to, prompt.length],
    ].filter(([, a, b]) => b > a)
  }

  build() {
    const { trace, words } = this.scene
    const end = Math.min(trace.prompt, this.built + SLICE)
    for (; this.built < end; this.built++) {
      const [name] = this.sections.find(([, a, b]) => this.built >= a && this.built < b)
      if (name !== this.section) {
        this.section = name
        this.part = el('div', { class: `part ${name}` }, el('span', { class: 'role' }, words.paper[name]))
        this.block = null
        this.scene.parts.paper.append(this.part)
      }
      this.place(trace.started.prompt[this.built], this.built, name)
    }
    if (this.built === trace.prompt) this.section = null
    else
      this.frame = requestAnimationFrame(() => {
        this.build()
        this.scene.redraw()
      })
    this.lit = []
    this.reading = ''
  }

  place(token, index, section) {
    const { started } = this.scene.trace
    const before = started.prompt[index - 1]
    const template = index < started.own_start || index >= started.own_stop
    const afterMark = template && this.marked
    this.marked = template && (token.special || (afterMark && token.text !== '\n'))
    const special = token.special || (template && (afterMark || token.text === '\n'))
    const shares = before && token.start < before.stop && !token.special
    if (
      !this.block ||
      (this.block.count >= BLOCK && !shares && (/[.。!?！？\n]$/.test(before.text) || this.block.count >= 3 * BLOCK))
    ) {
      this.block = el('div', { class: this.scene.trace.prompt > 200 ? 'block' : '' })
      this.block.count = 0
      this.part.append(this.block)
      this.word = null
    }
    this.block.count++
    const stays =
      special &&
      !token.special &&
      this.word &&
      before?.special !== undefined &&
      this.chips[index - 1]?.classList.contains('special')
    if (
      !this.word ||
      (beginsWord(token.text, before?.text) && !stays) ||
      (special && !stays) ||
      (!special && this.chips[index - 1]?.classList.contains('special')) ||
      this.word.childElementCount > 11
    ) {
      if (!shares) this.block.append((this.word = el('span', { class: 'word' })))
    }
    this.word.classList.toggle('lead', template && section === 'question' && index < started.own_start)
    this.chips.push(this.chip(token, index, special))
    this.home(shares).append(this.chips[index])
    const leads = template && section === 'question' && index === started.own_start - 1 && special
    if (leads || (!template && token.text.endsWith('\n'))) {
      this.block.append(el('br'))
      this.word = null
    }
  }

  /** Tokens that share a character are put side by side under one stroke. */
  home(shares) {
    if (!shares) {
      this.shared = null
      return this.word
    }
    if (!this.shared) {
      this.shared = el('span', { class: 'shared' }, this.chips[this.chips.length - 2])
      this.word.append(this.shared)
    }
    return this.shared
  }

  chip(token, index, special) {
    const flagged = this.scene.trace.started.flagged.includes(index)
    const partial = /⟨[0-9A-F]{2}⟩/.test(token.text)
    return el(
      'span',
      {
        class: `chip${special ? ' special' : ''}${flagged ? ' flagged' : ''}${partial ? ' partial' : ''}`,
        'data-column': index,
        dir: 'auto',
      },
      visible(token.text),
    )
  }

  draw(moment) {
    this.drawReading(moment)
    this.drawTorn(moment)
    this.drawLooks(moment)
  }

  /** While a pass reads, its chips are tinted. */
  drawReading({ phase, pass, reading, state }) {
    const span = phase === 'prefill' ? (reading ? [pass.start, pass.stop] : pass ? null : [0, state.prompt]) : null
    const key = String(span)
    if (key === this.reading) return
    this.reading = key
    this.scene.parts.paper.classList.toggle('reading', Boolean(span))
    this.chips.forEach((chip, i) => chip.classList.toggle('now', Boolean(span) && i >= span[0] && i < span[1]))
  }

  /** Chips whose notes were let go are faded. */
  drawTorn({ t }) {
    const { trace } = this.scene
    const count = tears(trace, t)
    const key = `${count} ${this.chips.length}`
    if (key === this.torn) return
    this.torn = key
    this.chips.forEach((chip, i) => chip.classList.toggle('torn', trace.gone.get(i) <= t))
  }

  drawLooks(moment) {
    const { trace, lens, view, parts } = this.scene
    const focus = view.word >= 0 && view.word < moment.words ? view.word : moment.focus
    const row = trace.prompt + focus - 1
    const looks = focus >= 0 ? lens.looks(row) : []
    for (const chip of this.lit) this.unlight(chip)
    this.lit = []
    const best = looks.find((look) => look.column !== row && look.weight >= 0.1)
    for (const { weight, column } of looks.slice(0, 40)) {
      const chip = this.chips[column]
      if (chip) this.light(chip, weight, best?.column === column)
    }
    const hovered = this.chips[view.column]
    if (hovered) {
      hovered.classList.add('hover')
      this.lit.push(hovered)
    }
    const found = focus >= 0 ? lens.row(row) : null
    setText(parts.sinkShare, found?.weights ? percent(found.weights[0]) : '')
    this.drawProvenance(found)
    if (best && this.chips[best.column] && this.focused !== best.column) this.bring(best.column)
    else if (focus < 0 && this.focused !== null) {
      this.focused = null
      parts.paper.scrollTop = 0
    }
  }

  /** Rows are recomputed from the run's tape, or the strongest of them were recorded, or nobody has them any more. */
  drawProvenance(found) {
    const { parts, words } = this.scene
    const kind = found === 'missing' ? 'missing' : (found?.provenance ?? '')
    if (parts.lensTag.dataset.kind === kind) return
    parts.lensTag.dataset.kind = kind
    parts.lensTag.replaceChildren(kind === 'missing' ? words.lens.missing : kind ? tag(words, kind, true) : '')
    parts.sink.parentElement.hidden = kind === 'missing'
    parts.lensTag.title = kind === 'recorded' ? words.lens.recorded_few : ''
  }

  light(chip, weight, best) {
    const share = shade(weight)
    chip.style.setProperty('--look', `${Math.round(share * 100)}%`)
    chip.classList.toggle('on', share > 0.25)
    chip.classList.toggle('strong', share > 0.6)
    if (best) {
      chip.classList.add('best')
      chip.dataset.share = percent(weight)
    }
    this.lit.push(chip)
  }

  unlight(chip) {
    chip.style.removeProperty('--look')
    chip.classList.remove('on', 'strong', 'best', 'hover')
  }

  /** Scrolls the sheet so that the chip looked at most is in the middle. */
  bring(column) {
    const { paper } = this.scene.parts
    this.focused = column
    if (paper.scrollHeight <= paper.clientHeight + 1) return
    const box = this.chips[column].getBoundingClientRect()
    const home = paper.getBoundingClientRect()
    if (box.top < home.top + 8 || box.bottom > home.bottom - 8) {
      paper.scrollTop += (box.top + box.bottom) / 2 - (home.top + home.bottom) / 2
    }
  }
}
