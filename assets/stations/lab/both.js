/** The remedy's real runs, sat one after another: what each said and took, and the ways to see them played. */
import { button, el, fill, setText, tag } from '../../scene/dom.js'
import { bytes, duration, number } from '../../scene/text.js'
import { Trace } from '../../scene/trace/trace.js'
import { figuresOf } from '../shared/figures.js'
import { sit } from '../shared/sitting.js'

const time = (seconds) => duration(seconds).join(' ')
const ROWS = { ttft: time, tpot: time, prompt: (n) => number(n), taken: (n) => number(n), answer: (n) => number(n), notes: bytes }

export class Both {
  /** `lab`: the page; `lab.arrange(runs)` may change what is sat, `lab.pair` names those whose words must be the same (all
   * of them without), the first of them being the one to compare with. [data-both] is idle, running, finished or failed; [data-sat=NAME] names each run. */
  constructor(lab) {
    this.lab = lab
    const { common } = lab
    this.sat = lab.options.kept?.sat ?? {}
    this.go = button(common.both.sit, () => this.run(), { class: 'pill main', 'data-do': 'both', disabled: true })
    this.told = el('p', { class: 'verdict', 'data-both': 'idle', 'aria-live': 'polite' })
    this.table = el('div', { class: 'wide' })
    this.root = el('div', {}, el('div', { class: 'row' }, this.go), this.told, this.table)
  }

  ready({ runs, model }) {
    this.runs = runs
    this.root.hidden = !Object.keys(runs).length // what is simulated has none
    this.model = model
    this.go.disabled = Boolean(this.running)
    this.draw()
  }

  close() {
    this.closed = true
    this.leave?.()
  }

  async run() {
    const { lab } = this
    this.running = this.go.disabled = true
    this.sat = {}
    this.told.dataset.both = 'running'
    try {
      for (const [name, settings] of Object.entries(lab.arrange?.(this.runs) ?? this.runs)) {
        setText(this.told, fill(lab.common.both.running, { name: lab.words.runs[name] }))
        const { id, events } = await sit(lab, { ...settings, model: this.model }, (leave) => { this.leave = leave })
        if (this.closed) return
        const trace = new Trace()
        for (const event of events) trace.push(event)
        this.sat[name] = { id, ...figuresOf(trace) }
        this.draw()
      }
      this.told.dataset.both = 'finished'
    } catch ({ message }) {
      this.told.dataset.both = 'failed'
      setText(this.told, message || lab.unreachable)
    }
    this.running = this.go.disabled = false
  }

  draw() {
    const { lab, sat } = this
    const { common, words, scene } = lab
    const done = Object.entries(sat)
    if (!done.length) return this.table.replaceChildren()
    const [, first] = done[0]
    const others = done.slice(1)
    const beside = (lab.pair ? sat[lab.pair[0]] : first) ?? first
    if (others.length === Object.keys(this.runs).length - 1) {
      this.told.dataset.both = 'finished'
      const [one, ...rest] = (lab.pair ?? Object.keys(this.runs)).map((name) => sat[name])
      const same = rest.every((run) => run.ids.join() === one.ids.join())
      this.told.dataset.same = same
      const verdict = same ? 'same' : 'differs'
      setText(this.told, words.both?.[verdict] ?? common.both[verdict])
    }
    const row = (name, cell) => el('tr', { 'data-row': name }, el('th', { scope: 'row' }, common.both[name]), ...done.map(cell))
    this.table.replaceChildren(el('table', { class: 'sat' },
      el('thead', {}, el('tr', {}, el('th', {}), ...done.map(([name, run]) => el('th', { scope: 'col', 'data-sat': name, 'data-run': run.id }, words.runs[name])))),
      el('tbody', {},
        ...Object.entries(ROWS).filter(([name]) => name !== 'taken' || done.some(([, run]) => run.taken)).map(([name, say]) => row(name, ([, run]) =>
          el('td', { 'data-value': run[name] ?? '' }, run[name] === null ? '' : say(run[name]), ' ', tag(scene, 'measured', true)))),
        row('text', ([, run]) => el('td', { class: 'answer', dir: 'auto' }, run.text || common.both.nothing)),
        row('see', ([, run]) => el('td', {}, this.link('exam_room', { run: run.id }, common.both.room),
          ...(run === first || run === beside ? [] : [' · ', this.link('compare', { run: beside.id, beside: run.id }, common.both[beside === first ? 'compare' : 'compare_plain'])]))))))
    return undefined
  }

  /** A real link, with the run in its address; a plain click stays in this session. */
  link(name, runs, text) {
    const { onPage, paths } = this.lab.options
    const query = { ...Object.fromEntries(new URLSearchParams(location.search)), lang: this.lab.lang, ...runs }
    for (const gone of ['at', 'layer', 'head', ...(runs.beside ? [] : ['beside'])]) delete query[gone]
    return el('a', {
      href: `${paths[name]}?${new URLSearchParams(query)}`, 'data-to': name, onclick: (event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
        event.preventDefault()
        onPage({ name, query })
      },
    }, text)
  }
}
