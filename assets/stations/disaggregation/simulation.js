/**
 * What is simulated: the sliders, and what the service answers to them. One implementation, in Python: the page only asks.
 *
 * The root is [data-simulation] with what was asked (data-load, data-bandwidth, data-seed, data-split, data-mix), data-rate,
 * and data-state: none (no costs), working, ready or failed; data-loads tells the same of the curves by load.
 * `onChange()` is called whenever `sim` or `loads` is new; both null where there are no costs.
 */
import { button, el, fill, setText, tag } from '../../scene/dom.js'
import { bytes, duration, number } from '../../scene/text.js'

const BANDWIDTHS = [1e7, 1e8, 1e9, 1e10, 1e11, 3.6e12]
const PATIENCE = 180 // milliseconds a slider rests before anything is asked
const CURVES = ['bandwidth', 'split', 'mix'] // what the curves by load depend on

export const time = (seconds) => duration(seconds).join(' ')
export const share = (part) => `${number(100 * part)}%`

export class Simulation {
  constructor(lab, onChange) {
    Object.assign(this, { lab, onChange, sim: null, loads: null, values: null })
    const { words } = lab
    const w = words.controls
    const slide = (name, min, max, step) => {
      const input = el('input', { type: 'range', min, max, step, 'data-do': name, disabled: true, oninput: () => this.change() })
      const told = el('output', {})
      return { input, told, label: el('label', { class: 'slide' }, el('b', {}, w[name]), input, told) }
    }
    const choose = (name, options) => {
      const input = el('select', { 'data-do': name, disabled: true, onchange: () => this.change() }, ...Object.entries(options).map(([value, text]) => el('option', { value }, text)))
      return { input, label: el('label', {}, el('b', {}, w[name]), input) }
    }
    this.load = slide('load', 10, 110, 5)
    this.bandwidth = slide('bandwidth', 0, BANDWIDTHS.length - 1, 1)
    this.split = choose('split', w.splits)
    this.mix = choose('mix', w.mixes)
    this.seed = el('input', { type: 'number', min: 0, max: 2 ** 31 - 1, step: 1, 'data-do': 'seed', disabled: true, onchange: () => this.change() })
    this.another = button(w.another, () => this.other(), { class: 'pill', 'data-do': 'another', disabled: true })
    this.trouble = el('p', { class: 'hint', 'data-asked': '', 'aria-live': 'polite' })
    this.root = el('div', { 'data-simulation': '', 'data-state': 'none', class: 'controls' },
      this.load.label, this.bandwidth.label,
      el('div', { class: 'row' }, this.split.label, this.mix.label, el('label', {}, el('b', {}, w.seed), this.seed), this.another, tag(lab.scene, 'simulated')), this.trouble)
  }

  /** Costs are new, or others: measured here or recorded. */
  show() {
    const { figures } = this.lab
    const usual = figures?.simulated
    for (const input of [this.load.input, this.bandwidth.input, this.split.input, this.mix.input, this.seed, this.another]) input.disabled = !usual
    if (!usual) {
      Object.assign(this, { sim: null, loads: null, key: null })
      this.root.dataset.state = 'none'
      return this.onChange()
    }
    if (!this.values) this.fill(this.lab.options.kept?.asked ?? usual.asked)
    return this.ask()
  }

  fill({ load, bandwidth, seed, split, mix }) {
    this.load.input.value = Math.round(100 * load)
    this.bandwidth.input.value = Math.max(0, BANDWIDTHS.indexOf(bandwidth))
    this.split.input.value = split
    this.mix.input.value = mix
    this.seed.value = seed
    this.read()
  }

  read() {
    const seed = Math.trunc(Number(this.seed.value))
    this.values = {
      load: Number(this.load.input.value) / 100, bandwidth: BANDWIDTHS[Number(this.bandwidth.input.value)], seed: seed >= 0 && seed < 2 ** 31 ? seed : 1,
      split: this.split.input.value, mix: this.mix.input.value,
    }
    this.seed.value = this.values.seed
    Object.assign(this.root.dataset, this.values)
  }

  other() {
    this.seed.value = (this.values.seed % 999) + 1
    this.change()
  }

  change() {
    this.read()
    this.root.dataset.state = 'working'
    clearTimeout(this.later)
    this.later = setTimeout(() => this.ask(), PATIENCE)
  }

  close() {
    clearTimeout(this.later)
    this.closed = true
  }

  /** The simulation for what the sliders say, then the curves where they are others. What has been overtaken is dropped. */
  async ask() {
    const { lab, values, root } = this
    const { simulated: usual, loads, costs } = lab.figures
    const whose = [lab.recorded, lab.shown.model, JSON.stringify(costs)].join()
    const key = JSON.stringify([values, whose])
    const curves = JSON.stringify([...CURVES.map((name) => values[name]), whose])
    if (key === this.key) return this.told()
    this.key = key
    try {
      root.dataset.state = 'working'
      const asked = Object.keys(values).every((name) => values[name] === usual.asked[name])
      const sim = asked ? usual : await this.get('simulate', Object.keys(values))
      if (this.key !== key || this.closed) return undefined
      this.sim = sim
      Object.assign(root.dataset, { state: 'ready', rate: sim.rate })
      this.told()
      if (curves === this.curves) return undefined
      root.dataset.loads = 'working'
      const same = CURVES.every((name) => values[name] === usual.asked[name])
      const found = same ? loads : (await this.get('loads', CURVES)).loads
      if (this.key !== key || this.closed) return undefined
      Object.assign(this, { loads: found, curves })
      root.dataset.loads = 'ready'
      this.onChange()
    } catch (problem) {
      this.key = null
      root.dataset.state = 'failed'
      setText(this.trouble, problem.message ?? lab.unreachable)
    }
    return undefined
  }

  get(what, names) {
    const { lab, values } = this
    const query = { model: lab.shown.model, ...(lab.recorded ? { recorded: true } : {}), ...Object.fromEntries(names.map((name) => [name, values[name]])) }
    return lab.station.ask(`labs/disaggregation/${what}?${new URLSearchParams(query)}`)
  }

  /** What the sliders mean here, in words. */
  told() {
    const { sim, lab, values } = this
    const w = lab.words.controls
    if (sim) {
      setText(this.load.told, fill(w.load_told, { load: share(values.load), n: sim.machines, rate: number(60 * sim.rate, sim.rate < 1 ? 1 : 0) }))
      setText(this.bandwidth.told, fill(w.bandwidth_told, { speed: w.bandwidths[values.bandwidth], n: number(sim.paper), bytes: bytes(sim.note * sim.paper), time: time(sim.travel) }))
      const most = sim.capacity.apart / sim.capacity.together
      setText(this.trouble, [
        ...(values.load > most ? [fill(w.bound, { share: share(most), n: sim.machines })] : []),
        ...(sim.rate > sim.capacity.link ? [fill(w.narrow, { rate: number(60 * sim.capacity.link, 1) })] : []),
      ].join(' '))
    }
    this.onChange()
  }
}
