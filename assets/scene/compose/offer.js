/** When an exam needs a model that is not here: its size and terms, fetching it, and a recording meanwhile. */
import { button, el, fill, setText } from '../dom.js'
import { ask } from '../source.js'
import { bytes, percent } from '../text.js'

const EVERY = 1000

export class ModelOffer {
  constructor(compose) {
    this.compose = compose
  }

  draw() {
    const { compose } = this
    const model = compose.model
    const absent = model && !model.present
    compose.offered.hidden = !absent
    if (!absent) {
      this.shown = ''
      return
    }
    const key = [model.name, model.state].join()
    if (key !== this.shown) this.build(model)
    this.shown = key
    if (model.state === 'fetching') this.drawProgress(model)
    if (model.state === 'fetching' && !this.timer) this.timer = setTimeout(() => this.poll(), EVERY)
  }

  build(model) {
    const { compose } = this
    const { w } = compose
    this.accept = el('input', { type: 'checkbox', name: 'accept' })
    this.go = button(w.fetch, () => this.fetch(model), {
      class: 'pill main',
      disabled: Boolean(model.terms),
      'data-action': 'fetch',
    })
    this.accept.addEventListener('change', () => {
      this.go.disabled = !this.accept.checked
    })
    this.progress = el('p', { role: 'status' })
    this.bar = el('progress', { max: 1 })
    const terms = model.terms
      ? [
          /^https:/.test(model.terms)
            ? el('a', { href: model.terms, target: '_blank', rel: 'noopener' }, w.terms)
            : el('details', {}, el('summary', {}, w.terms), el('p', {}, model.terms)),
          el('label', {}, this.accept, w.accept),
        ]
      : []
    const fetching = model.state === 'fetching'
    const recording = compose.example?.recording ?? (model.languages?.includes('zh') ? 'chinese' : null)
    compose.offered.replaceChildren(
      el('p', {}, fill(w.absent, { model: model.title ?? model.name, size: bytes(model.bytes) })),
      el('p', { class: 'licence' }, fill(w.licence, { licence: model.licence })),
      ...(fetching ? [this.progress, this.bar] : terms),
      el(
        'div',
        { class: 'row' },
        fetching ? '' : this.go,
        recording
          ? button(w.play_recording, () => this.play(recording), { class: 'pill', 'data-action': 'recording' })
          : '',
      ),
    )
  }

  drawProgress(model) {
    setText(
      this.progress,
      fill(this.compose.w.fetching, { model: model.title ?? model.name, share: percent(model.progress ?? 0) }),
    )
    this.bar.value = model.progress ?? 0
  }

  play(recording) {
    const { scene } = this.compose
    scene.open(recording)
    scene.options.onRun(recording)
    this.compose.hide()
  }

  async fetch(model) {
    const { compose } = this
    const { options, lang } = compose.scene
    this.go.disabled = true
    try {
      await ask(options.base, `models/${encodeURIComponent(model.name)}/fetch`, lang, { accept_terms: true })
      await this.poll()
    } catch (refusal) {
      compose.tell(compose.sentence(refusal))
      this.go.disabled = false
    }
  }

  async poll() {
    this.timer = null
    if (this.closed) return
    await this.compose.refreshModels()
  }

  close() {
    this.closed = true
    clearTimeout(this.timer)
  }
}
