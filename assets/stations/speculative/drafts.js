/**
 * An answer stepped through pass by pass: words that were looked up in pencil, the pass that reads them all at once, and
 * what became of them. Either what a lab's run did, or this person's own run gone through again by the same rule.
 *
 * The root is [data-drafts] with data-source, data-step, data-of, data-what (plain, guess, read, judged), data-pass,
 * data-read (query length), data-offered, data-accepted, data-words (on the sheet); [data-own] has the own run's sums.
 */
import { button, el, fill, setText, tag } from '../../scene/dom.js'
import { number, percent, visible } from '../../scene/text.js'
import { lookUp, rehearse, totals } from './lookup.js'

const PACE = 1500 // milliseconds a frame is shown
const AROUND = 6 // tokens shown before and after what was looked up
const MOST = 8 // guesses a pass, where the own run had none

export class Drafts {
  constructor(lab) {
    Object.assign(this, { lab, step: 0, name: 'own', most: MOST })
    const { words } = lab
    const w = words.drafts
    this.sources = el('div', { class: 'row', role: 'group', 'aria-label': w.source })
    this.toggle = button(w.play, () => this.play(), { class: 'pill main', 'data-do': 'play' })
    this.scrub = el('input', { type: 'range', min: 1, value: 1, 'aria-label': w.scrub, 'data-do': 'scrub', oninput: () => this.to(+this.scrub.value - 1) })
    this.row = el('div', { class: 'row' }, this.toggle, button('‹', () => this.to(this.step - 1), { class: 'pill', 'data-do': 'back', 'aria-label': w.back }),
      button('›', () => this.to(this.step + 1), { class: 'pill', 'data-do': 'step', 'aria-label': w.step }), this.scrub)
    this.whence = el('p', { class: 'hint' })
    this.says = el('p', { class: 'told', 'aria-live': 'polite' })
    this.sheet = el('p', { class: 'answer-sheet', dir: 'auto' })
    this.found = el('p', { class: 'found', dir: 'auto' })
    this.rows = el('div', { class: 'query' })
    this.count = el('p', { class: 'hint', 'data-count': '' })
    this.stage = el('div', { class: 'drafts', tabindex: 0, role: 'group', 'aria-label': w.keys, onkeydown: (event) => this.key(event) },
      el('div', {}, el('h3', {}, w.sheet), this.sheet, this.count), el('div', {}, el('h3', {}, w.found), this.found, el('h3', {}, w.pass), this.rows))
    this.own = el('p', { class: 'verdict', 'data-own': '' })
    this.whole = el('div', {}, this.sources, this.row, this.says, this.stage, this.whence, this.own)
    this.none = el('p', { class: 'hint' }, w.none)
    this.root = el('div', { 'data-drafts': '' }, el('link', { rel: 'stylesheet', href: new URL('speculative.css', import.meta.url).href }), this.none, this.whole)
  }

  close() {
    clearTimeout(this.timer)
  }

  show() {
    this.stories = this.collect()
    const names = Object.keys(this.stories)
    this.none.hidden = names.length > 0
    this.whole.hidden = !names.length
    if (!names.length) return
    const kept = names.includes(this.name) && this.frames
    if (!names.includes(this.name)) this.name = names[0]
    const { words } = this.lab
    this.sources.replaceChildren(el('span', {}, words.drafts.source), ...names.map((name) => button(words.sources[name], () => this.choose(name), { class: 'pill', 'data-source': name, 'aria-pressed': String(name === this.name) })))
    this.tellOwn()
    this.frames = framesOf(this.stories[this.name])
    this.scrub.max = this.frames.length
    this.to(kept ? Math.min(this.step, this.frames.length - 1) : this.telling(), Boolean(this.timer))
  }

  /** What one sees first: a guess of which some was right; else the beginning. */
  telling() {
    const { passes } = this.stories[this.name]
    return Math.max(0, this.frames.findIndex(({ what, pass }) => what === 'judged' && passes[pass].accepted > 0))
  }

  choose(name) {
    this.name = name
    this.step = 0
    this.halt()
    this.show()
  }

  /** The stories there are, by name: this run, and the lab's papers. */
  collect() {
    const stories = {}
    const own = this.ownStory()
    if (own) stories.own = own
    for (const paper of Object.keys(this.lab.words.papers)) {
      const one = this.lab.results[`answer/${paper}/8`] ?? this.lab.results[`answer/${paper}/4`]
      if (one) stories[paper] = measured(one, this.lab.recorded ? 'recorded' : 'measured')
    }
    return stories
  }

  /** The run on show: its own guesses where it had any, else those that lookup would have made, by the same rule. */
  ownStory() {
    const { started, events } = this.lab
    const words = events.filter(({ type }) => type === 'chose').map(({ token, candidates }) => ({ id: token.id, text: token.text, candidates }))
    if (!started || words.length < 2 || events.some(({ type }) => type === 'reused')) return null
    const prompt = started.prompt.map(({ id, text }) => ({ id, text }))
    const { draft } = started.settings
    const texts = new Map([...prompt, ...words].map(({ id, text }) => [id, text]))
    if (draft) {
      const passes = events.filter(({ type }) => type === 'decoded').map(({ drafts, accepted }) => ({ drafts: drafts.map(({ id, text, probability }) => ({ id, text, chance: probability })), accepted }))
      return { prompt, words, passes, most: draft, kind: this.lab.summary?.recorded ? 'recorded' : 'measured' }
    }
    const ids = words.map(({ id }) => id)
    const chance = (id, place) => words[place]?.candidates?.find((one) => one.id === id)?.probability ?? null
    let chosen = 1
    const passes = rehearse(prompt.map(({ id }) => id), ids, MOST, started.settings.max_new_tokens).map(({ ids: guessed, accepted }) => {
      // what the model thought of a guess is known as far as all guesses before it were right
      const drafts = guessed.map((id, i) => ({ id, text: texts.get(id), chance: i <= accepted ? chance(id, chosen + i) : null }))
      chosen += accepted + 1
      return { drafts, accepted }
    })
    return { prompt, words, passes, most: MOST, kind: 'computed' }
  }

  tellOwn() {
    const { words, scene } = this.lab
    const { own } = this.stories
    this.own.hidden = this.name !== 'own'
    if (!own) return
    const sums = totals(own.passes.map(({ drafts, accepted }) => ({ ids: drafts, accepted })))
    const usual = own.words.length - 1
    Object.assign(this.own.dataset, { ...sums, words: own.words.length, most: own.most })
    const template = own.kind === 'computed' ? words.drafts.own : words.drafts.own_had
    this.own.replaceChildren(fill(template, { k: own.most, n: number(own.words.length), accepted: number(sums.accepted), offered: number(sums.offered), steps: number(sums.steps), usual: number(usual) }), ' ', tag(scene, own.kind, true))
  }

  key(event) {
    const done = { ' ': () => this.play(), ArrowRight: () => this.to(this.step + 1), ArrowLeft: () => this.to(this.step - 1), Home: () => this.to(0), End: () => this.to(this.frames.length - 1) }[event.key]
    if (!done || event.target !== this.stage) return
    event.preventDefault()
    done()
  }

  play() {
    if (this.timer) return this.halt()
    if (this.step === this.frames.length - 1) this.to(0)
    setText(this.toggle, this.lab.words.drafts.pause)
    const on = () => {
      if (this.step === this.frames.length - 1) return this.halt()
      this.to(this.step + 1, true)
      this.timer = setTimeout(on, PACE)
      return undefined
    }
    this.timer = setTimeout(on, PACE)
    return undefined
  }

  halt() {
    clearTimeout(this.timer)
    this.timer = null
    setText(this.toggle, this.lab.words.drafts.play)
  }

  to(step, playing = false) {
    if (!playing) this.halt()
    this.step = Math.max(0, Math.min(this.frames.length - 1, step))
    this.scrub.value = this.step + 1
    const story = this.stories[this.name]
    const frame = this.frames[this.step]
    const { drafts, accepted } = story.passes[frame.pass]
    Object.assign(this.root.dataset, { source: this.name, step: this.step + 1, of: this.frames.length, what: frame.what, pass: frame.pass + 1, read: 1 + drafts.length, offered: drafts.length, accepted: frame.what === 'judged' ? accepted : '', words: frame.words })
    const { words, scene } = this.lab
    setText(this.says, this.sentence(story, frame))
    this.drawSheet(story, frame)
    this.drawFound(story, frame)
    this.drawPass(story, frame)
    const steps = frame.pass + (frame.what === 'judged' || frame.what === 'plain' ? 1 : 0)
    setText(this.count, fill(words.drafts.count, { words: number(frame.words), steps: number(steps), usual: number(frame.words - 1) }))
    this.whence.replaceChildren(words.drafts[story.kind], ' ', tag(scene, story.kind, true))
  }

  sentence(story, { what, pass, before }) {
    const w = this.lab.words.drafts.frames
    const { drafts, accepted } = story.passes[pass]
    const over = before + accepted + 1 >= story.words.length
    const values = { pass: pass + 1, k: drafts.length, read: 1 + drafts.length, accepted, word: visible(story.words[before + accepted]?.text ?? '') }
    const key = what !== 'judged' ? what : accepted === drafts.length ? 'all' : accepted ? 'some' : 'none'
    return fill(w[key === 'all' && over && sameEnd(story, before, pass) ? 'some' : key], values)
  }

  /** The answer as it stands: ink, the draft in pencil, what was refused struck through beside the own word. */
  drawSheet(story, { what, pass, before, words: count }) {
    const { drafts, accepted } = story.passes[pass]
    const fresh = what === 'plain' || what === 'judged' ? before : count
    const nodes = story.words.slice(0, count).flatMap(({ text }, i) => piece(text, i >= fresh ? (i < fresh + accepted ? 'fresh right' : 'fresh') : guessed(story, i) ? 'right' : ''))
    if (what === 'guess' || what === 'read') nodes.push(...drafts.flatMap(({ text }) => piece(text, 'pencil')))
    if (what === 'judged') nodes.push(...drafts.slice(refusedFrom(story, before, pass)).flatMap(({ text }) => piece(text, 'struck')))
    this.sheet.replaceChildren(...nodes)
  }

  /** Where lookup found the text's last tokens, and what followed them there. */
  drawFound(story, { pass, before }) {
    const { drafts } = story.passes[pass]
    const { words } = this.lab
    const text = [...story.prompt, ...story.words.slice(0, before)]
    const guess = lookUp(text.map(({ id }) => id), Math.max(1, drafts.length))
    if (!drafts.length) return this.found.replaceChildren(guess.at < 0 ? words.drafts.nowhere : words.drafts.no_room)
    if (guess.ids.join() !== drafts.map(({ id }) => id).join()) return this.found.replaceChildren(words.drafts.by_model)
    const stop = guess.at + guess.size
    const from = Math.max(0, guess.at - AROUND)
    const end = stop + drafts.length
    const part = (a, b, kind) => text.slice(a, b).flatMap(({ text: one }) => piece(one, kind))
    const where = guess.at < story.prompt.length ? words.drafts.in_paper : words.drafts.in_answer
    return this.found.replaceChildren(el('small', {}, where), from ? '… ' : '', ...part(from, guess.at, 'far'), ...part(guess.at, stop, 'same'), ...part(stop, end, 'pencil'), ...part(end, end + AROUND, 'far'), end + AROUND < text.length ? ' …' : '')
  }

  /** The tokens that go in together, and under each what the model says comes after it. */
  drawPass(story, { what, pass, before }) {
    const { drafts, accepted } = story.passes[pass]
    const { words } = this.lab
    const judged = what === 'judged' || what === 'plain'
    const own = refusedFrom(story, before, pass)
    const reads = [story.words[before - 1], ...drafts]
    const says = (i) => {
      if (!judged) return el('em', { class: 'open' }, '?')
      if (i > accepted) return el('em', { class: 'vain', title: words.drafts.vain }, '–')
      const right = i < drafts.length && i < own
      return el('em', { class: right ? 'right' : 'own' }, visible(story.words[before + i].text), right ? ' ✓' : '')
    }
    const chance = (i) => (i ? drafts[i - 1].chance : null)
    this.rows.replaceChildren(
      el('p', { class: 'length' }, fill(words.drafts.length, { read: reads.length })),
      el('div', { class: 'reads' }, ...reads.map(({ text }, i) => el('div', { class: ['read', !i && 'newest', judged && i > own && 'refused'].filter(Boolean).join(' ') },
        el('b', { dir: 'auto' }, visible(text)), el('i', {}, '↓'), says(i),
        el('small', {}, judged && chance(i) !== null && chance(i) !== undefined && i <= accepted + 1 ? percent(chance(i)) : '\u00a0')))),
      el('p', { class: 'hint' }, drafts.length ? words.drafts.rows : words.drafts.row))
  }
}

/** A lab's answer as a story. */
function measured({ prompt, words, passes, draft }, kind) {
  const tokens = (pairs) => pairs.map(([id, text]) => ({ id, text }))
  return {
    prompt: tokens(prompt), words: tokens(words), most: draft, kind,
    passes: passes.map(({ drafts, chances, accepted }) => ({ accepted, drafts: tokens(drafts).map((one, i) => ({ ...one, chance: chances[i] })) })),
  }
}

/**
 * What is shown one after another: an ordinary step is one frame; with guesses there are three: they stand there, they are
 * read, and it is known what became of them. `before` words are on the sheet when the pass begins, `words` in the frame.
 */
function framesOf(story) {
  const frames = []
  let before = 1
  story.passes.forEach(({ drafts, accepted }, pass) => {
    const after = Math.min(story.words.length, before + accepted + 1)
    if (drafts.length) frames.push({ what: 'guess', pass, before, words: before }, { what: 'read', pass, before, words: before })
    frames.push({ what: drafts.length ? 'judged' : 'plain', pass, before, words: after })
    before = after
  })
  return frames
}

/** The first guess that was not what came: an answer may end with a word that had been guessed. */
function refusedFrom(story, before, pass) {
  const { drafts, accepted } = story.passes[pass]
  return accepted + (sameEnd(story, before, pass) ? 1 : 0) > drafts.length ? drafts.length : accepted + (sameEnd(story, before, pass) ? 1 : 0)
}

function sameEnd(story, before, pass) {
  const { drafts, accepted } = story.passes[pass]
  return drafts[accepted]?.id !== undefined && drafts[accepted].id === story.words[before + accepted]?.id
}

/** Whether word `index` of the answer came from a guess. */
function guessed(story, index) {
  story.from ??= story.passes.flatMap(({ accepted }) => [...Array(accepted).fill(true), false])
  return story.from[index - 1]
}

/** A token behind its gap, which gets no stroke of its own; line breaks stay line breaks, with their sign. */
function piece(text, kind) {
  const seen = text.includes('\n') ? visible(text).replaceAll('↵', '↵\n') : visible(text)
  return [/^ [^ ]/.test(text) ? ' ' : '', el('span', { class: kind || null }, seen)]
}
