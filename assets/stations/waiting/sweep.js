/**
 * Papers of growing length are really sat, one after another, as anybody's run is; how long each made one wait is kept
 * by the service from the run's own trace. Stop any time: what was measured stays. Exported as CSV or JSON.
 */
import { button, el, fill, setText } from '../../scene/dom.js'
import { ServiceSource, ask } from '../../scene/source.js'

const LENGTHS = [32, 64, 128, 256, 512, 1024, 2048, 4096]
const ANSWER = 10
const SAMPLE = 2000 // characters cut into tokens to learn how long a token is

/** The value of a fitted curve. */
export const at = ({ a, b, c }, n) => a + b * n + c * n * n

/** What is kept of waiting, shortest paper first. */
export const waitsOf = (measures) =>
  Object.entries(measures?.results ?? {}).filter(([name]) => name.startsWith('wait/')).map(([, wait]) => wait).sort((a, b) => a.prompt - b.prompt)

export class Sweep {
  constructor(desk) {
    this.desk = desk
    const { words } = desk
    this.start = button(words.sweep.start, () => this.run(), { class: 'pill main', 'data-do': 'sweep', disabled: true })
    this.halt = button(words.measuring.stop, () => this.stop(), { class: 'pill halt', 'data-do': 'sweep-stop', hidden: true })
    this.most = el('select', { 'data-choose': 'most', 'aria-label': words.sweep.most })
    this.bar = el('progress', { max: 1, value: 0, 'aria-label': words.measuring.progress, hidden: true })
    this.told = el('p', { class: 'hint', 'aria-live': 'polite', 'data-measure': 'sweep', 'data-state': 'idle' })
    this.export = el('span', { class: 'row', hidden: true }, ...['csv', 'json'].map((form) =>
      button(words.sweep[form], () => this.save(form), { class: 'pill', 'data-do': `export-${form}` })))
    this.root = el('div', { class: 'measuring' },
      el('div', { class: 'row' }, this.start, this.halt, el('label', {}, words.sweep.most, this.most), this.export, this.bar), this.told)
  }

  plan(measures, waits) {
    this.measures = measures
    this.waits = waits
    this.start.disabled = !measures
    this.export.hidden = !waits.length
    setText(this.start, this.desk.words.sweep[waits.length ? 'again' : 'start'])
    if (!measures || this.most.options.length) return
    const possible = LENGTHS.filter((length) => length + ANSWER < measures.context * 0.95)
    this.most.append(...possible.map((length) => el('option', { value: length }, String(length))))
    this.most.value = String(possible.includes(1024) ? 1024 : possible.at(-1))
  }

  say(state, key, values = {}) {
    this.told.dataset.state = state
    setText(this.told, key ? fill(this.desk.words[key.startsWith('sweep') ? 'sweep' : 'measuring'][key.split('.')[1]], values) : '')
  }

  async run() {
    const lengths = LENGTHS.filter((length) => length <= Number(this.most.value))
    this.stopped = false
    this.going(true)
    let done = 0
    try {
      const token = await this.charactersPerToken()
      // The first run after the model was loaded is slower than any other: it is not kept.
      await this.sit(lengths[0] * token)
      for (const length of lengths) {
        if (this.stopped) break
        this.bar.value = done / lengths.length
        this.say('running', 'sweep.going', { n: done + 1, of: lengths.length, tokens: length })
        const run = await this.sit(length * token)
        if (this.stopped || !run) break
        await ask(this.desk.base, 'measures', this.desk.lang, { kind: 'wait', run })
        await this.desk.onKept()
        done += 1
      }
      const values = { n: done, of: lengths.length }
      this.say(this.stopped ? 'stopped' : 'finished', this.stopped ? 'measuring.stopped' : 'measuring.finished', values)
    } catch (problem) {
      this.told.dataset.state = 'failed'
      setText(this.told, problem.message || this.desk.unreachable)
    }
    this.going(false)
  }

  going(on) {
    this.start.hidden = on
    this.halt.hidden = this.bar.hidden = !on
    this.most.disabled = on
  }

  async charactersPerToken() {
    const text = this.paper(SAMPLE)
    const { tokens } = await ask(this.desk.base, 'tokenise', this.desk.lang, { text, model: this.measures.model })
    return text.length / tokens.length
  }

  /** The sample text over and over, up to a length in characters. */
  paper(characters) {
    const { text } = this.desk
    return text.repeat(Math.ceil(characters / text.length)).slice(0, Math.max(8, Math.round(characters)))
  }

  /** One run of its own: its id once it is over, null when it was stopped. */
  async sit(characters) {
    const { base, lang } = this.desk
    const settings = { prompt: this.paper(characters), mode: 'raw', max_new_tokens: ANSWER, model: this.measures.model, timeout: 600 }
    const { id } = await ask(base, 'runs', lang, settings)
    this.current = id
    const events = []
    await new Promise((resolve, reject) => {
      this.leave = new ServiceSource(base, id).events(0, (more) => events.push(...more), resolve, (state) => state === 'refused' && reject({}))
    })
    this.current = null
    const last = events.at(-1)
    if (last?.type === 'finished' && last.code) throw { message: fill(this.desk.errors[last.code] ?? '', Object.fromEntries(last.values)) }
    return last?.reason === 'stopped' ? null : id
  }

  async stop() {
    this.stopped = true
    if (this.current) await ask(this.desk.base, `runs/${this.current}/stop`, this.desk.lang, {}).catch(() => {})
  }

  save(form) {
    const { machine } = this.measures
    const columns = ['prompt', 'ttft', 'prefill', 'tpot', 'middle', 'together', 'cold', 'taken']
    const csv = () => [columns.join(), ...this.waits.map((wait) => columns.map((name) => wait[name] ?? '').join())].join('\n')
    const content = form === 'csv' ? `${csv()}\n` : JSON.stringify({ machine, fits: this.measures.fits, waits: this.waits }, null, 2)
    const link = el('a', { href: URL.createObjectURL(new Blob([content], { type: form === 'csv' ? 'text/csv' : 'application/json' })), download: `waiting.${form}` })
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 1000)
  }
}
