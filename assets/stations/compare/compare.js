/**
 * Two runs side by side: two scenes on one clock, one player for both, and what differs, in numbers and in words.
 *
 * [data-clock] tells the shared moment in `at` and the two runs; each scene tells its own in its [data-moment].
 */
import { button, el, fill, setText } from '../../scene/dom.js'
import { buildPlayer } from '../../scene/frame.js'
import { Hands } from '../../scene/play/hands.js'
import { Still } from '../../scene/play/still.js'
import { Pair } from '../../scene/play/pair.js'
import { drawPlayer } from '../../scene/draw/transport.js'
import { time } from '../../scene/draw/headline.js'
import { Again } from './again.js'
import { Side } from './side.js'
import { loaded, mountStation, part, stylesheet } from '../shared/station.js'
import { Versus } from './versus.js'

const CSS = new URL('compare.css', import.meta.url).href
/** Pairs of recordings: what each is about is in the words. */
const PAIRS = { book: ['open-book', 'closed-book'], length: ['open-book', 'long-paper'], models: ['open-book', 'chinese'] }

export const mount = (element, options) => mountStation(element, options, (station) => new Compare(station))

class Compare {
  constructor(station) {
    this.station = station
    this.options = station.options
    this.words = { ...this.options.scene, ...station.words, lang: this.options.lang === 'zh' ? 'zh-CN' : 'en' }
    const { words } = this
    this.pair = new Pair((t) => this.draw(t), matchMedia('(prefers-reduced-motion: reduce)').matches)
    this.parts = {}
    this.row = buildPlayer(words, (name, part) => (this.parts[name] = part))
    this.parts.link.remove() // the address itself is the link
    this.parts.run.nextElementSibling.remove()
    this.hands = new Hands(this.row, () => this.pair)
    this.presets = el('div', { class: 'row presets', role: 'group', 'aria-label': words.presets.label },
      el('span', {}, words.presets.label),
      ...Object.entries(PAIRS).map(([name, [run, beside]]) =>
        button(words.presets[name], () => this.options.onPair({ run, beside }), {
          class: 'pill', 'data-preset': name, 'aria-pressed': this.options.run === run && this.options.beside === beside,
        })))
    const one = (letter) => new Side({ letter, pair: this.pair, page: this.options, words: this.options.scene, label: words.side })
    this.sides = [one('A'), one('B')]
    this.versus = new Versus(words, this.options)
    this.again = new Again({ words, options: this.options, onRun: (id) => this.options.onPair({ run: this.options.run, beside: id }) })
    this.clock = el('div', { class: 'unseen', 'data-clock': '' })
    this.still = new Still()
    this.sheet = stylesheet(CSS)
    this.root = el('div', { class: 'body compare' }, this.sheet,
      el('div', { class: 'sides' }, ...this.sides.map((side) => side.root)), this.row, this.clock,
      part(words, 'versus', this.versus.root), part(words, 'again', this.again.root))
  }

  async start() {
    await loaded(this.sheet)
    const [one, two] = this.sides
    this.station.picker.parentElement.replaceWith(this.presets)
    one.choose(this.station.picker)
    const picker = this.station.picker.cloneNode(true)
    picker.removeAttribute('data-do')
    picker.addEventListener('change', () => this.options.onPair({ run: this.options.run, beside: picker.value }))
    two.choose(picker)
    const beside = this.options.beside ?? this.counterpart([...picker.options].map((option) => option.value))
    one.open(this.options.run, this.options.moment)
    this.open(beside)
    await Promise.all(this.sides.map((side) => side.ready))
  }

  /** What a run is compared with while nobody has chosen: the person's newest other run, else a recording. */
  counterpart(runs) {
    const recordings = new Set(Object.values(PAIRS).flat())
    const other = runs.filter((run) => run !== this.options.run)
    return other.find((run) => !recordings.has(run)) ?? ['closed-book', 'open-book'].find((run) => other.includes(run)) ?? 'open-book'
  }

  open(beside) {
    this.beside = beside
    this.sides[1].open(beside, this.options.moment)
  }

  /** The page heard of another run beside; light and dark are changed, too. */
  update(options) {
    const { beside } = options
    for (const side of this.sides) side.light(options.theme)
    if (beside && beside !== this.beside) {
      this.options = { ...this.options, beside, moment: {} }
      this.open(beside)
    }
    for (const preset of this.presets.querySelectorAll('button')) {
      const [run, other] = PAIRS[preset.dataset.preset]
      preset.setAttribute('aria-pressed', run === this.options.run && other === this.beside)
    }
  }

  draw(t) {
    const { parts, pair, words, sides, clock } = this
    drawPlayer(parts, pair, words)
    setText(parts.run, fill(words.clock, { time: time(t) }))
    const told = { at: t, run: sides[0].run ?? '', beside: sides[1].run ?? '', playing: pair.playing, following: pair.following }
    for (const [name, value] of Object.entries(told)) if (clock.dataset[name] !== String(value)) clock.dataset[name] = value
    this.versus.draw(...sides)
    this.again.draw(sides[0].trace.started)
    this.tell(t)
  }

  /** A moment on which the clock stands still: the address may keep it, and both runs. */
  tell(t) {
    const { pair, beside, options } = this
    const stands = pair.trace.finished && !pair.playing && !pair.following
    const { layer, head } = options.moment ?? {}
    this.still.tell(stands ? { run: options.run, beside, at: Math.ceil(t * 1e6) / 1e6, layer, head } : null, options.onMoment)
  }

  close() {
    this.still.close()
    this.hands.close()
    this.again.close()
    for (const side of this.sides) side.close()
    this.pair.close()
  }
}
