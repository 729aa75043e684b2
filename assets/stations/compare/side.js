/** One of two runs on the page: which it is, and its scene on the shared clock. */
import { el, fill } from '../../scene/dom.js'
import { Scene } from '../../scene/scene.js'

export class Side {
  /** `page`: the station's options; `words`: the scene's; `label`: what the choice of a run is called. */
  constructor({ letter, pair, page, words, label }) {
    this.letter = letter
    this.page = page
    this.words = words
    this.pair = pair
    this.label = fill(label, { letter })
    this.head = el('label', { class: 'which' }, el('b', { 'aria-hidden': 'true' }, letter))
    this.host = el('div', { class: 'host' })
    this.root = el('section', { class: 'side', 'data-side': letter, 'aria-label': this.label }, this.head, this.host)
    this.ready = new Promise((resolve) => { this.arrived = resolve })
  }

  get run() {
    return this.scene?.run
  }
  get trace() {
    return this.scene?.trace ?? { words: [], events: [] }
  }
  get kind() {
    return this.scene?.kind
  }
  get connection() {
    return this.scene?.connection
  }

  /** The list to choose this side's run from. */
  choose(picker) {
    this.picker = picker
    picker.setAttribute('aria-label', this.label)
    this.head.append(picker)
  }

  open(run, moment = {}) {
    this.pick(run)
    if (this.scene) return this.scene.open(run, moment)
    const { lang, errors, examples, models, base, theme } = this.page
    this.scene = new Scene(this.host, {
      words: this.words, lang, errors, examples, models, base, theme, run, moment, clock: this.pair,
      limits: {}, onRun: () => {}, onMoment: () => {},
    })
    const { root } = this.scene.parts
    new MutationObserver((_, observer) => root.dataset.ready && (observer.disconnect(), this.arrived())).observe(root, { attributes: true })
  }

  /** A run that came after the list was made is added to it. */
  pick(run) {
    const known = [...this.picker.options].some((option) => option.value === run)
    if (!known) this.picker.prepend(el('option', { value: run }, run))
    this.picker.value = run
    this.picker.title = this.picker.selectedOptions[0].textContent // a long one is cut
  }

  /** What the list calls the run; one that came later is called so once its summary is here. */
  get title() {
    const option = this.picker?.selectedOptions[0]
    const told = this.scene?.summary
    if (option && told?.id === option.value && option.textContent === told.id) this.picker.title = option.textContent = told.title
    return option?.textContent ?? ''
  }

  light(theme) {
    this.scene?.update({ theme })
  }

  close() {
    this.scene?.close()
  }
}
