/** Station one: a text above, its tokens below, live; another tokenizer beside it; its whole vocabulary. */
import { button, el, fill, setText } from '../../scene/dom.js'
import { bytes } from '../../scene/text.js'
import { ServiceSource } from '../../scene/source.js'
import { Cut } from './cut.js'
import { Rates } from '../shared/rates.js'
import { mountStation } from '../shared/station.js'
import { Vocabulary } from './vocabulary.js'

const PAUSE = 150 // milliseconds after the last key

export const mount = (element, options) => mountStation(element, options, (station) => new Tokenise(station))

class Tokenise {
  constructor(station) {
    this.station = station
    const { words } = station
    this.text = el('textarea', { name: 'text', rows: 3, dir: 'auto', spellcheck: 'false', 'aria-label': words.text, placeholder: words.placeholder })
    this.model = el('select', { name: 'model' })
    this.mode = choice('mode', ['chat', 'raw'], words)
    this.control = choice('control', ['text', 'control'], words)
    this.other = el('select', { name: 'other' })
    this.hint = el('p', { class: 'hint', hidden: true })
    this.nothing = el('p', { class: 'hint', hidden: true }, words.nothing)
    this.cuts = [new Cut(station, 'first'), new Cut(station, 'other')]
    this.apart = el('p', { class: 'apart', 'data-apart': '' })
    this.absent = el('p', { class: 'hint', hidden: true })
    this.rates = new Rates(station)
    this.vocabulary = new Vocabulary(station)
    this.root = el('div', { class: 'body' }, this.bench(), this.beside(), el('div', { class: 'two' }, this.rates.root, this.vocabulary.root))
    this.listen()
  }

  bench() {
    const { words, options } = this.station
    const samples = options.texts.map(({ id, text }) =>
      button(words[`text_${id}`], () => this.write(text), { class: 'pill', 'data-sample': id }))
    return sheet(words.bench, words.bench_sub,
      el('div', { class: 'row samples' }, button(words.from_run, () => this.fromRun(), { class: 'pill', 'data-sample': 'run' }), ...samples),
      this.text,
      el('div', { class: 'row options' },
        el('label', {}, words.model, this.model), this.mode.root, this.control.root),
      this.hint, this.nothing, this.cuts[0].root)
  }

  beside() {
    const { words } = this.station
    return sheet(words.beside, words.beside_sub,
      el('div', { class: 'row options' }, el('label', {}, words.other, this.other), this.apart), this.absent, this.cuts[1].root)
  }

  listen() {
    this.text.addEventListener('input', () => {
      clearTimeout(this.timer)
      this.timer = setTimeout(() => this.cut(), PAUSE)
    })
    for (const field of [this.model, this.other]) field.addEventListener('change', () => this.cut())
    this.model.addEventListener('change', () => this.aside())
    for (const { root } of [this.mode, this.control]) root.addEventListener('change', () => this.cut())
  }

  async start() {
    const { station } = this
    this.models = []
    try {
      this.models = (await station.ask('models')).models
    } catch (refusal) {
      this.cuts[0].refuse(refusal)
    }
    if (station.closed) return
    const { kept } = station.options
    const main = this.models.find((model) => model.default)
    fillSelect(this.model, this.models.filter((model) => model.present), kept?.model ?? main?.name)
    fillSelect(this.other, this.models, kept?.other ?? this.models.find((model) => !model.default)?.name)
    this.mode.value = kept?.mode ?? 'chat'
    this.control.value = kept?.control ?? 'text'
    if (kept) this.text.value = kept.text
    else await this.readRun()
    await this.cut()
    await this.aside()
  }

  kept() {
    const { text, model, other, mode, control } = this
    return { text: text.value, model: model.value, other: other.value, mode: mode.value, control: control.value }
  }

  async readRun() {
    const { station } = this
    try {
      const { prompt } = await station.ask(`runs/${encodeURIComponent(station.options.run)}`)
      this.text.value = prompt
    } catch (refusal) {
      this.cuts[0].refuse(refusal)
    }
  }

  async fromRun() {
    await this.readRun()
    await this.cut()
  }

  write(text) {
    this.text.value = text
    return this.cut()
  }

  /** Both tokenizers on the text as it is now. */
  async cut() {
    clearTimeout(this.timer)
    const { text, control } = this
    const chosen = this.models.find((model) => model.name === this.model.value)
    if (!chosen) return
    const mode = chosen.chat === false ? 'raw' : this.mode.value
    this.mode.root.hidden = chosen.chat === false
    this.nothing.hidden = text.value !== ''
    const [first, second] = await Promise.all([
      this.cuts[0].show({ text: text.value, model: chosen.name, control: control.value, mode }),
      this.cutOther(),
    ])
    this.drawFlag(first)
    this.drawApart(first, second)
  }

  drawFlag(cut) {
    const { words } = this.station
    const typed = cut?.flagged.length ?? 0
    this.hint.hidden = !typed
    this.hint.dataset.flagged = typed
    if (typed) setText(this.hint, fill(words[`typed_${this.control.value}`], { n: typed }))
  }

  async cutOther() {
    const { station, cuts, text, control } = this
    const model = this.models.find(({ name }) => name === this.other.value)
    this.absent.hidden = !model || model.present
    if (!model) return cuts[1].blank()
    if (model.present) return cuts[1].show({ text: text.value, model: model.name, control: control.value, mode: 'raw' })
    setText(this.absent, fill(station.words.absent, { model: model.title, size: bytes(model.bytes) }))
    this.absent.dataset.model = model.name
    return this.recorded(model)
  }

  /** What that tokenizer once made of a recorded prompt: shown as recorded, and of that text only. */
  async recorded(model) {
    const { station, cuts } = this
    if (this.started === undefined) this.started = await firstOf(station, model.name)
    if (!this.started || station.closed) return cuts[1].blank()
    const { text, prompt, own_start, own_stop, flagged, tokenise_seconds } = this.started
    cuts[1].draw({ text, tokens: prompt, own_start, own_stop, flagged, seconds: tokenise_seconds, model: model.name }, 'recorded')
    return null
  }

  drawApart(first, second) {
    const { words } = this.station
    const both = first && second
    const [one, two] = both ? [first, second].map((cut) => cut.own_stop - cut.own_start) : []
    this.apart.dataset.apart = both ? `${one} ${two}` : ''
    setText(this.apart, both ? fill(words.apart, { one, two }) : '')
  }

  /** What does not depend on the text: rates over the samples, the vocabulary. */
  async aside() {
    const present = this.models.filter((model) => model.present)
    this.vocabulary.use(this.model.value)
    await this.rates.show(present)
  }

  close() {
    clearTimeout(this.timer)
  }
}

/** The beginning of a recorded run of that model, or null where there is none. */
async function firstOf(station, model) {
  try {
    const { runs } = await station.ask('runs')
    const run = runs.find((one) => one.recorded && one.model === model)
    return run ? await started(station, run.id) : null
  } catch {
    return null
  }
}

function started(station, run) {
  return new Promise((resolve) => {
    const stop = new ServiceSource(station.options.base, run).events(0, (events) => {
      const found = events.find((event) => event.type === 'started')
      if (found) {
        resolve(found)
        setTimeout(() => stop())
      }
    }, () => resolve(null), (state) => state === 'refused' && resolve(null))
  })
}

const sheet = (title, sub, ...children) =>
  el('section', { class: 'sheet', 'aria-label': title }, el('header', {}, el('h2', {}, title, el('span', {}, sub))), ...children)

/** A choice of a few as radio buttons that look like one switch. */
function choice(name, values, words) {
  const inputs = values.map((value) => el('input', { type: 'radio', name, value }))
  const root = el('fieldset', { class: 'switch' }, el('legend', {}, words[name]),
    ...inputs.map((input) => el('label', {}, input, el('span', {}, words[`${name}_${input.value}`]))))
  return {
    root,
    get value() {
      return inputs.find((input) => input.checked).value
    },
    set value(value) {
      for (const input of inputs) input.checked = input.value === value
    },
  }
}

function fillSelect(select, models, value) {
  select.replaceChildren(...models.map(({ name, title }) => el('option', { value: name }, title)))
  if (models.some(({ name }) => name === value)) select.value = value
}
