/** The options of a run as form fields: built once, read and written as the service's settings. */
import { el } from '../dom.js'

const NUMBERS = {
  temperature: { min: 0, max: 2, step: 0.1 },
  top_k: { min: 0, max: 1000, step: 1 },
  top_p: { min: 0.05, max: 1, step: 0.05 },
  seed: { min: 0, max: 2 ** 31 - 1, step: 1 },
  max_new_tokens: { min: 1, step: 1 },
}
const PLAIN = {
  mode: 'chat',
  control: 'text',
  temperature: 0,
  top_k: 0,
  top_p: 1,
  seed: 0,
  max_new_tokens: 64,
  stop: [],
  model: '',
}

export function fields(words, limits) {
  const field = (label, input, hint) => el('label', { title: hint ?? null }, el('span', {}, label), input)
  const choice = (values, name) =>
    el('select', { name }, ...values.map(([value, label]) => el('option', { value }, label)))
  const made = {
    mode: choice(
      [
        ['chat', words.chat],
        ['raw', words.raw],
      ],
      'mode',
    ),
    controls: choice(
      [
        ['text', words.control_text],
        ['control', words.control_control],
      ],
      'control',
    ),
    stop: el('input', { type: 'text', name: 'stop' }),
    model: el('select', { name: 'model' }),
  }
  for (const [name, bounds] of Object.entries(NUMBERS)) {
    made[name] = el('input', {
      type: 'number',
      name,
      ...bounds,
      max: name === 'max_new_tokens' ? (limits.new_tokens ?? 512) : bounds.max,
    })
  }
  const hints = { temperature: words.greedy_hint, top_k: words.all_hint }
  made.box = el(
    'div',
    { class: 'fields' },
    field(words.model, made.model),
    field(words.mode, made.mode),
    ...Object.keys(NUMBERS).map((name) => field(words[name], made[name], hints[name])),
    field(words.stop_string, made.stop),
  )
  made.control = field(words.control, made.controls)
  made.control.className = 'control'
  made.control.hidden = true
  made.fillModels = (models, chosen) => {
    const value = chosen ?? made.model.value
    made.model.replaceChildren(...models.map((model) => el('option', { value: model.name }, model.title ?? model.name)))
    made.model.value = value || (models.find((model) => model.default)?.name ?? '')
  }
  return made
}

/** A line break in a one-line field is written \n. */
const escape = (text) => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
const unescape = (text) => text.replace(/\\(n|\\)/g, (_, c) => (c === 'n' ? '\n' : '\\'))

export function read(made, prompt) {
  const settings = { prompt, mode: made.mode.value, control: made.control.hidden ? 'text' : made.controls.value }
  for (const name of Object.keys(NUMBERS)) {
    const value = Number(made[name].value)
    settings[name] = Number.isFinite(value) && made[name].value !== '' ? value : PLAIN[name]
  }
  settings.stop = made.stop.value ? [unescape(made.stop.value)] : []
  if (made.model.value) settings.model = made.model.value
  return settings
}

export function write(made, settings) {
  const all = { ...PLAIN, ...settings }
  made.mode.value = all.mode
  made.controls.value = all.control
  for (const name of Object.keys(NUMBERS)) made[name].value = all[name]
  made.stop.value = all.stop.length ? escape(all.stop[0]) : ''
  if (all.model) made.model.value = all.model
}
