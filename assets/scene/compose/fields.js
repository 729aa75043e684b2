// @ts-check
/** The options of a run as form fields: built once, read and written as the service's settings. */
import { el } from '../dom.js'

/**
 * @import {Settings} from '../trace/events.js'
 *
 * @typedef {(typeof import('../../words/en/scene.json'))['compose']} Words
 * @typedef {{name: string, title?: string, default?: boolean}} Model
 * @typedef {'temperature' | 'top_k' | 'top_p' | 'seed' | 'max_new_tokens'} Numeric
 * @typedef {Pick<Settings, Numeric | 'prompt' | 'mode' | 'control' | 'stop' | 'model'>} Wanted what the form asks for
 * @typedef {ReturnType<typeof fields>} Fields
 */

/** @type {Numeric[]} */
const NUMERIC = ['temperature', 'top_k', 'top_p', 'seed', 'max_new_tokens']
/** @type {Record<Numeric, {min: number, max?: number, step: number}>} */
const BOUNDS = {
  temperature: { min: 0, max: 2, step: 0.1 },
  top_k: { min: 0, max: 1000, step: 1 },
  top_p: { min: 0.05, max: 1, step: 0.05 },
  seed: { min: 0, max: 2 ** 31 - 1, step: 1 },
  max_new_tokens: { min: 1, step: 1 },
}
/** @type {Omit<Wanted, 'prompt'>} */
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

/** @param {Words} words @param {{new_tokens?: number}} limits */
export function fields(words, limits) {
  /** @param {string} label @param {HTMLElement} input @param {string} [hint] */
  const field = (label, input, hint) => el('label', { title: hint ?? null }, el('span', {}, label), input)
  /** @param {string} name @param {Record<string, string>} values with their labels */
  const choice = (name, values) =>
    el('select', { name }, ...Object.entries(values).map(([value, label]) => el('option', { value }, label)))
  /** @param {Numeric} name */
  const numeric = (name) =>
    el('input', { type: 'number', name, max: limits.new_tokens ?? 512, ...BOUNDS[name] })

  const mode = choice('mode', { chat: words.chat, raw: words.raw })
  const controls = choice('control', { text: words.control_text, control: words.control_control })
  const stop = el('input', { type: 'text', name: 'stop' })
  const model = el('select', { name: 'model' })
  const numbers = /** @type {Record<Numeric, HTMLInputElement>} */ (
    Object.fromEntries(NUMERIC.map((name) => [name, numeric(name)]))
  )
  /** @type {Partial<Record<Numeric, string>>} */
  const hints = { temperature: words.greedy_hint, top_k: words.all_hint }
  const box = el(
    'div',
    { class: 'fields' },
    field(words.model, model),
    field(words.mode, mode),
    ...NUMERIC.map((name) => field(words[name], numbers[name], hints[name])),
    field(words.stop_string, stop),
  )
  const control = field(words.control, controls)
  control.className = 'control'
  control.hidden = true
  /** @param {Model[]} models @param {string} [chosen] */
  const fillModels = (models, chosen) => {
    const value = chosen ?? model.value
    model.replaceChildren(...models.map((one) => el('option', { value: one.name }, one.title ?? one.name)))
    model.value = value || (models.find((one) => one.default)?.name ?? '')
  }
  return { ...numbers, mode, controls, stop, model, box, control, fillModels }
}

/** A line break in a one-line field is written \n. @param {string} text */
const escape = (text) => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
/** @param {string} text */
const unescape = (text) => text.replace(/\\(n|\\)/g, (_, /** @type {string} */ c) => (c === 'n' ? '\n' : '\\'))

/** @param {Fields} made @param {string} prompt @returns {Omit<Wanted, 'model'> & {model?: string}} */
export function read(made, prompt) {
  const numbers = /** @type {Record<Numeric, number>} */ (
    Object.fromEntries(NUMERIC.map((name) => [name, numberIn(made[name], PLAIN[name])]))
  )
  return {
    prompt,
    mode: made.mode.value === 'raw' ? 'raw' : 'chat',
    control: !made.control.hidden && made.controls.value === 'control' ? 'control' : 'text',
    ...numbers,
    stop: made.stop.value ? [unescape(made.stop.value)] : [],
    ...(made.model.value ? { model: made.model.value } : {}),
  }
}

/** @param {HTMLInputElement} field @param {number} plain what stands for no number */
function numberIn(field, plain) {
  const value = Number(field.value)
  return Number.isFinite(value) && field.value !== '' ? value : plain
}

/** @param {Fields} made @param {Partial<Wanted>} settings */
export function write(made, settings) {
  const all = { ...PLAIN, ...settings }
  made.mode.value = all.mode
  made.controls.value = all.control
  for (const name of NUMERIC) made[name].value = String(all[name])
  made.stop.value = all.stop.length ? escape(all.stop[0]) : ''
  if (all.model) made.model.value = all.model
}
