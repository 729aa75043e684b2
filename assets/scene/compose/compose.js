/** The exam paper as a form: examples, the text, the options; starting a run and showing why one was refused. */
import { button, el, fill, setText } from '../dom.js'
import { ask } from '../source.js'
import { number } from '../text.js'
import { fields, read, write } from './fields.js'
import { ModelOffer } from './offer.js'

const PAUSE = 500 // milliseconds after the last key until the tokens are counted

// Spellings of control tokens in the vocabularies of the usual models.
const CONTROL = /<\|[^|<>\s]+\|>|<\/?(?:s|bos|eos|pad|unk)>|<(?:start|end)_of_(?:turn|text)>|\[\/?INST\]/

/** A random id kept in this browser: whose runs these are. */
export function owner() {
  const name = 'open-book-exam-owner'
  try {
    const known = localStorage.getItem(name)
    if (known) return known
    const made = crypto.randomUUID?.() ?? String(Math.random()).slice(2)
    localStorage.setItem(name, made)
    return made
  } catch {
    return ''
  }
}

export class Compose {
  constructor(scene) {
    this.scene = scene
    this.models = []
    this.example = null
    this.offer = new ModelOffer(this)
  }

  get w() {
    return this.scene.words.compose
  }
  get form() {
    return this.scene.parts.compose
  }

  toggle() {
    if (this.form.hidden) this.open()
    else this.hide()
  }

  hide() {
    this.form.hidden = true
    this.scene.redraw()
  }

  /** Opens the form; with `settings` filled in and `fact` selected, so that typing replaces it. */
  open({ settings, fact } = {}) {
    if (!this.built) this.build()
    this.form.hidden = false
    this.tell('')
    const [first] = this.scene.options.examples
    if (settings) this.fill(settings)
    else if (!this.text.value && first) this.choose(first)
    this.text.focus()
    const at = fact ? this.text.value.indexOf(fact) : -1
    if (at >= 0) this.text.setSelectionRange(at, at + fact.length)
    this.refreshModels()
  }

  build() {
    this.built = true
    const { w, form } = this
    const { limits, examples } = this.scene.options
    this.tabs = el(
      'div',
      { class: 'tabs', role: 'group', 'aria-label': w.examples },
      ...examples.map((example) =>
        button(example.title, () => this.choose(example), {
          class: 'pill',
          'data-example': example.id,
          'aria-pressed': 'false',
        }),
      ),
    )
    this.text = el('textarea', {
      'aria-label': w.prompt,
      placeholder: w.placeholder,
      maxlength: limits.characters ?? null,
      dir: 'auto',
      spellcheck: 'false',
      name: 'prompt',
    })
    this.hint = el('p', { class: 'hint' })
    this.count = el('span', { class: 'count' })
    this.fields = fields(this.scene.words.compose, limits)
    this.refusal = el('p', { class: 'refusal', role: 'alert', hidden: true })
    this.start = el('button', { type: 'submit', class: 'pill main', title: w.keys }, w.start)
    this.offered = el('div', { class: 'offer', hidden: true })
    form.append(
      this.tabs,
      this.hint,
      this.text,
      this.offered,
      this.fields.control,
      el('details', {}, el('summary', {}, w.options), this.fields.box),
      this.refusal,
      el(
        'div',
        { class: 'buttons' },
        this.start,
        button(w.cancel, () => this.hide(), { class: 'pill' }),
        this.count,
      ),
    )
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      this.submit(read(this.fields, this.text.value))
    })
    form.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit()
      if (event.key === 'Escape') this.hide()
    })
    this.text.addEventListener('input', () => this.typed())
    this.fields.model.addEventListener('change', () => this.offer.draw())
    for (const field of [this.fields.model, this.fields.mode, this.fields.controls]) field.addEventListener('change', () => this.typed())
  }

  choose(example) {
    this.example = example
    this.fill(example.settings)
    this.mark(example)
  }

  /** Which example the text is; none once it was changed. */
  mark(example) {
    setText(this.hint, example?.hint ?? '')
    for (const tab of this.tabs.children) tab.setAttribute('aria-pressed', tab.dataset.example === example?.id)
  }

  fill(settings) {
    this.text.value = settings.prompt ?? ''
    this.fields.fillModels(this.models, settings.model)
    write(this.fields, settings)
    this.typed()
    this.offer.draw()
  }

  typed() {
    this.tokens = null
    this.drawCount()
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.countTokens(), PAUSE)
    this.fields.control.hidden = !CONTROL.test(this.text.value)
    if (this.example && this.example.settings.prompt !== this.text.value) this.mark(null)
    this.tell('')
    this.drawReady()
  }

  drawCount() {
    const { limits } = this.scene.options
    const n = Array.from(this.text.value).length
    const characters = limits.characters ? fill(this.w.count, { n: number(n), most: number(limits.characters) }) : number(n)
    const { tokens, bound } = this.tokens ?? {}
    const told = tokens && bound ? fill(this.w.tokens, { tokens: number(tokens), bound: number(bound) }) : ''
    setText(this.count, [characters, told].filter(Boolean).join(' · '))
    this.count.dataset.tokens = tokens ?? ''
    if (bound && tokens > bound) this.tell(fill(this.scene.errors.too_many_tokens, { tokens: number(tokens), bound: number(bound) }))
  }

  /** How many tokens the paper has, before it is handed in; an engine that cannot say so now is not asked again. */
  async countTokens() {
    const { scene, fields } = this
    const { prompt, model, mode, control } = read(fields, this.text.value)
    if (!scene.engine.ready || this.model?.present === false || !prompt.trim()) return
    const tokens = await ask(scene.options.base, 'tokenise/count', scene.lang, { text: prompt, model, mode, control }).catch(() => null)
    if (tokens && prompt === this.text.value && !this.form.hidden) {
      this.tokens = tokens
      this.drawCount()
    }
  }

  /** The model the exam would be given to, as the service lists it. */
  get model() {
    const name = this.fields.model.value
    return this.models.find((model) => (name ? model.name === name : model.default))
  }

  drawReady() {
    if (!this.built) return
    const { engine } = this.scene
    this.start.disabled = !engine.ready || !this.text.value.trim() || this.model?.present === false
  }

  async refreshModels() {
    try {
      const { models } = await ask(this.scene.options.base, 'models', this.scene.lang)
      this.models = models
    } catch {
      return
    }
    this.fields.fillModels(this.models, this.fields.model.value || this.example?.settings?.model)
    this.offer.draw()
    this.drawReady()
  }

  async submit(settings) {
    const { options, lang } = this.scene
    this.start && (this.start.disabled = true)
    try {
      const { id } = await ask(options.base, 'runs', lang, { ...settings, owner: owner() })
      this.form.hidden = true
      this.scene.open(id)
      options.onRun(id)
    } catch (refusal) {
      if (this.form.hidden) this.open({ settings })
      this.tell(this.sentence(refusal))
      this.scene.engine.watch()
    }
    this.drawReady()
  }

  /** The service's own sentence, or ours for its code. */
  sentence({ code, values, message }) {
    const known = this.scene.errors?.[code]
    return message || (known && fill(known, values)) || this.w[code] || this.w.failed
  }

  tell(sentence) {
    this.refusal.hidden = !sentence
    setText(this.refusal, sentence)
  }

  close() {
    clearTimeout(this.timer)
    this.offer.close()
  }
}
