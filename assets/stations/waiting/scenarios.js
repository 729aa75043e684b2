/** What waiting is made of in four kinds of work: the wait for the first word, and the typing after it. Computed. */
import { el, fill, setText, tag } from '../../scene/dom.js'
import { number } from '../../scene/text.js'
import { at } from './sweep.js'

const KINDS = { document: [3000, 150], chat: [150, 200], code: [1200, 30], own: [500, 100] }

export class Scenarios {
  constructor({ words, scene }) {
    this.words = words
    this.sizes = structuredClone(KINDS)
    const field = (index, name, most) => {
      const input = el('input', { type: 'number', min: 1, max: most, value: KINDS.own[index], 'data-own': name })
      input.addEventListener('input', () => {
        const value = Math.round(Number(input.value))
        if (value >= 1 && value <= most) this.sizes.own[index] = value
        this.draw()
      })
      return el('label', {}, words.scenarios[name], input)
    }
    this.rows = el('div', {})
    this.note = el('p', { class: 'hint' })
    this.root = el('div', {}, el('div', { class: 'row options' }, field(0, 'paper', 100_000), field(1, 'answer', 10_000), tag(scene, 'computed')), this.rows, this.note)
  }

  show(fits, waits, context) {
    Object.assign(this, { fits, waits, context })
    this.draw()
  }

  draw() {
    const { words, fits } = this
    if (!fits?.ttft || !fits.tpot) {
      this.rows.replaceChildren()
      return setText(this.note, words.scenarios.later)
    }
    const far = Math.max(...this.waits.map((wait) => wait.prompt))
    const told = Object.entries(this.sizes).map(([name, [prompt, answer]]) => {
      const waiting = Math.max(0, at(fits.ttft, prompt))
      const typing = (answer - 1) * Math.max(0, at(fits.tpot, prompt + answer / 2))
      return { name, prompt, answer, waiting, typing, beyond: prompt > far, fits: prompt + answer <= this.context }
    })
    const longest = Math.max(...told.filter((one) => one.fits).map((one) => one.waiting + one.typing))
    this.rows.replaceChildren(...told.map((one) => this.row(one, longest)))
    setText(this.note, told.some((one) => one.fits && one.beyond) ? fill(words.scenarios.beyond, { n: number(far) }) : words.scenarios.within)
  }

  row({ name, prompt, answer, waiting, typing, beyond, fits }, longest) {
    const { words } = this
    const label = el('b', {}, words.scenarios[name], el('small', {}, fill(words.scenarios.size, { prompt: number(prompt), answer: number(answer) })))
    const data = { class: 'strip', 'data-scenario': name, 'data-waiting': waiting, 'data-typing': typing }
    if (!fits) return el('div', data, label, el('span', { class: 'hint' }, fill(words.scenarios.too_long, { n: number(this.context) })), el('i', {}, '–'))
    const total = waiting + typing
    const width = (seconds) => `width: ${(100 * seconds) / longest}%`
    return el('div', data, label,
      el('div', { class: 'stack' },
        el('span', { class: 'wait', style: width(waiting), title: words.scenarios.waiting }, waiting / longest > 0.14 ? `${words.scenarios.waiting} ${number(waiting, 1)} s` : ''),
        el('span', { class: 'type', style: width(typing), title: words.scenarios.typing }, typing / longest > 0.14 ? `${words.scenarios.typing} ${number(typing, 1)} s` : '')),
      el('i', {}, `${beyond ? '≈ ' : ''}${number(total, 1)} s`))
  }
}
