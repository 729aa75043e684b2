/**
 * Station three: one word per turn. A turn in slow motion, where it looked, how its word was chosen and what other
 * settings or another word would have made of it; what a step costs in time and bytes; why a run stops.
 *
 * [data-word-at] is the chosen word, from 0.
 */
import { button, el, fill, setText } from '../../scene/dom.js'
import { visible } from '../../scene/text.js'
import { Endings } from './endings.js'
import { Followed } from '../shared/followed.js'
import { Fork } from './fork.js'
import { Looks } from './looks.js'
import { loopOf } from './loop.js'
import { Sampling } from './sampling.js'
import { Share } from './share.js'
import { loaded, mountStation, part, stylesheet } from '../shared/station.js'
import { Times } from './times.js'
import { Turn } from './turn.js'

const CSS = new URL('decode.css', import.meta.url).href
const LIVE = 250 // milliseconds between two drawings while the model writes: they share the machine

export const mount = (element, options) => mountStation(element, options, (station) => new Decode(station))

class Decode {
  constructor(station) {
    this.station = station
    this.options = station.options
    this.words = station.words
    this.parts = []
    this.base = this.options.base ?? ''
    this.run = new Followed(station, { take: (events) => this.take(events), over: (finished) => this.over(finished), again: true })
    const { words } = this
    this.places = Object.fromEntries(['turn', 'sampling', 'times', 'share'].map((name) => [name, el('div')]))
    this.endings = new Endings({ words, errors: this.options.errors, base: this.base, lang: this.options.lang, endings: this.options.endings, onOpen: (run) => this.options.onRun(run) })
    this.sheet = stylesheet(CSS)
    const led = (name) => part(words, name, el('p', {}, words[name].lead), this.places[name])
    this.sections = { turn: part(words, 'turn', this.places.turn), sampling: led('sampling'), times: led('times'), share: led('share') }
    this.sections.turn.querySelector('header').append(el('em', {}, words.word.lead))
    for (const section of Object.values(this.sections)) section.hidden = true
    this.root = el('div', { class: 'body decode' }, this.sheet, this.run.line, ...Object.values(this.sections),
      part(words, 'endings', el('p', {}, words.endings.lead), this.endings.root))
  }

  close() {
    this.closed = true
    clearTimeout(this.later)
    this.endings.close()
    this.parts.forEach((part) => part.close?.())
  }

  /** A change of language keeps the word and the look. */
  kept() {
    return this.desk && { k: this.desk.k, layer: this.desk.layer, head: this.desk.head, hideSink: this.desk.hideSink }
  }

  async start() {
    await loaded(this.sheet)
    await this.run.start()
  }

  take(events) {
    const { type } = events.at(-1)
    if (type === 'finished') clearTimeout(this.later)
    else if (type !== 'queued') this.later ??= setTimeout(() => this.live(), LIVE)
  }

  /** While the model writes: the time of each word as it comes. */
  live() {
    this.later = null
    const loop = loopOf(this.run.events)
    if (this.closed || loop.words.length < 2) return
    this.times ??= this.plot({ loop, k: -1, onWord: () => {} })
    this.times.desk.loop = loop
    this.times.draw()
  }

  plot(desk) {
    const times = new Times({ words: this.words, scene: this.options.scene, lang: this.options.lang, recorded: this.station.recorded, ...desk })
    this.places.times.replaceChildren(times.root)
    this.sections.times.hidden = false
    return times
  }

  over(finished) {
    const loop = loopOf(this.run.events)
    this.run.ending(finished, loop.words.length > 0)
    if (loop.words.length) this.lay(loop)
  }

  lay(loop) {
    const { words, options } = this
    const { api, summary } = this.run
    const { moment, kept } = options
    const asked = Number.isInteger(moment?.layer) ? { layer: moment.layer, head: moment.head ?? null } : null
    const look = asked ?? summary?.lens ?? { layer: loop.started.facts.layers >> 1, head: null }
    this.desk = {
      words, api, loop, scene: options.scene, errors: options.errors, base: this.base, lang: options.lang, run: options.run,
      recorded: this.station.recorded, held: !!summary?.kept, k: this.firstWord(loop), layer: look.layer, head: look.head, hideSink: true, ...kept,
      onWord: (k) => this.choose(k),
      onLook: (change) => this.look(change),
      onFork: (candidate) => this.fork.sit(candidate),
      onAgain: () => this.run.again(),
      onOpen: (run) => options.onRun(run),
    }
    const { desk } = this
    this.steppers = []
    this.strip = this.answer(desk)
    this.turn = new Turn(desk, this.steps())
    this.looks = new Looks(desk)
    this.sampling = new Sampling(desk)
    this.fork = new Fork(desk)
    this.share = new Share(desk)
    this.times = this.plot({})
    this.times.desk = desk
    this.parts = [this.turn, this.sampling, this.fork]
    this.places.turn.replaceChildren(this.strip, this.turn.root, el('h3', {}, words.looks.title), el('p', {}, words.looks.lead), this.looks.root)
    this.places.sampling.replaceChildren(this.steps(), this.sampling.root,
      ...(desk.held ? [el('h3', {}, words.fork.title), el('p', {}, words.fork.lead), this.fork.root] : []))
    this.places.share.replaceChildren(this.share.root)
    Object.values(this.sections).forEach((section) => { section.hidden = false })
    this.choose(desk.k, false)
  }

  /** The word at the address's moment; else the first one that a turn of the loop made. */
  firstWord({ words }) {
    const { at } = this.options.moment ?? {}
    if (typeof at === 'number') {
      const reached = words.findLastIndex((word) => word.from !== 'taken' && word.chose.at <= at + 1e-6)
      if (reached >= 0) return reached
    }
    return Math.max(0, words.findIndex((word) => word.step))
  }

  answer({ loop }) {
    const { words } = this
    this.picks = loop.words.map(({ token, chose, from }, at) => button(visible(token.text), () => this.choose(at), {
      class: `pick${token.special ? ' special' : ''}${from === 'taken' ? ' taken' : ''}`, dir: 'auto', 'data-pick': at, title: `${(100 * chose.probability).toFixed(1)}%`,
      style: `--sure: ${Math.round(100 * chose.probability)}%`,
    }))
    return el('div', { class: 'picks', role: 'group', 'aria-label': words.word.label }, ...this.picks)
  }

  steps() {
    const { words } = this
    const where = el('b', { 'data-word-at': true })
    const go = (by, name) => button(by < 0 ? '←' : '→', () => this.choose(this.desk.k + by), { class: 'pill', 'aria-label': words.word[name], title: words.word[name], 'data-do': name })
    const arrows = [go(-1, 'before'), go(1, 'next')]
    this.steppers.push({ where, arrows })
    return el('span', { class: 'stepper' }, arrows[0], where, arrows[1])
  }

  choose(k, tell = true) {
    const { desk, words } = this
    const { loop } = desk
    desk.k = Math.max(0, Math.min(loop.words.length - 1, k))
    const word = loop.words[desk.k]
    this.picks.forEach((pick, at) => pick.setAttribute('aria-pressed', at === desk.k))
    for (const { where, arrows } of this.steppers) {
      setText(where, fill(words.word.at, { n: desk.k + 1, all: loop.words.length, word: `“${visible(word.token.text)}”` }))
      where.dataset.wordAt = desk.k
      arrows[0].disabled = desk.k === 0
      arrows[1].disabled = desk.k === loop.words.length - 1
    }
    if (tell) this.remember()
    this.turn.show()
    this.looks.show()
    this.sampling.show()
    this.times.draw()
    this.share.draw()
  }

  look(change) {
    Object.assign(this.desk, change)
    this.remember()
    this.looks.show()
    this.turn.frame()
  }

  remember() {
    const { k, layer, head, loop } = this.desk
    this.options.onMoment({ run: this.options.run, at: loop.words[k].from === 'taken' ? null : loop.words[k].chose.at, layer, head })
  }
}
