/**
 * The pool of blocks as a picture, stepped through: every frame is what the real pool and the real block tables held after
 * one change (`engine/labs/blocks.py`).
 *
 * The root is [data-pool] with data-step, data-of, data-what and data-free; [data-table=RUN] has data-blocks, and
 * [data-block=N] the runs that hold it (data-runs), its filled positions (data-full).
 */
import { button, el, fill, setText } from '../../scene/dom.js'
import { number, visible } from '../../scene/text.js'

const PACE = 1300 // milliseconds a frame is shown

export class PoolView {
  constructor(lab) {
    this.lab = lab
    this.step = null // none was asked for: the first in which something is shared
    const { words, common } = lab
    const w = words.pool
    this.none = el('p', { class: 'hint' }, common.unmeasured)
    this.toggle = button(w.play, () => this.play(), { class: 'pill main', 'data-do': 'play' })
    this.scrub = el('input', { type: 'range', min: 1, value: 1, 'aria-label': w.scrub, 'data-do': 'scrub', oninput: () => this.to(+this.scrub.value - 1) })
    this.row = el('div', { class: 'row' }, this.toggle, button('‹', () => this.to(this.step - 1), { class: 'pill', 'data-do': 'back', 'aria-label': w.back }),
      button('›', () => this.to(this.step + 1), { class: 'pill', 'data-do': 'step', 'aria-label': w.step }), this.scrub)
    this.says = el('p', { class: 'told', 'aria-live': 'polite' })
    this.tables = el('div', { class: 'tables' })
    this.blocks = el('div', { class: 'blocks', role: 'img', 'aria-label': w.picture })
    this.count = el('p', { class: 'hint', 'data-count': '' })
    this.whole = el('div', {}, this.row, this.says, el('div', { class: 'pool' }, el('div', {}, el('h3', {}, w.tables), this.tables), el('div', {}, el('h3', {}, w.title), this.blocks)), this.count)
    this.root = el('div', { 'data-pool': '' }, el('link', { rel: 'stylesheet', href: new URL('paged.css', import.meta.url).href }), this.none, this.whole)
  }

  show() {
    this.scene = this.lab.figures?.scenario ?? null
    this.none.hidden = Boolean(this.scene)
    this.whole.hidden = !this.scene
    if (!this.scene) return
    this.scrub.max = this.scene.frames.length
    this.step ??= Math.max(0, this.scene.frames.findIndex(({ what }) => what === 'shares'))
    this.to(Math.min(this.step, this.scene.frames.length - 1), this.timer)
  }

  close() {
    clearTimeout(this.timer)
  }

  /** Frame after frame to the last; from the last on, from the first again. */
  play() {
    const { words } = this.lab
    if (this.timer) return this.halt()
    if (this.step === this.scene.frames.length - 1) this.to(0)
    setText(this.toggle, words.pool.pause)
    const on = () => {
      if (this.step === this.scene.frames.length - 1) return this.halt()
      this.to(this.step + 1, true)
      this.timer = setTimeout(on, PACE)
      return undefined
    }
    this.timer = setTimeout(on, PACE)
    return undefined
  }

  halt() {
    clearTimeout(this.timer)
    this.timer = null
    setText(this.toggle, this.lab.words.pool.play)
  }

  to(step, playing = false) {
    if (!playing) this.halt()
    const { frames, count } = this.scene
    this.step = Math.max(0, Math.min(frames.length - 1, step))
    this.scrub.value = this.step + 1
    const frame = frames[this.step]
    Object.assign(this.root.dataset, { step: this.step + 1, of: frames.length, what: frame.what, run: frame.run, free: frame.free })
    setText(this.says, `${this.step + 1}/${frames.length} · ${this.sentence(frame)}`)
    const before = frames[this.step - 1]?.tables ?? {}
    this.tables.replaceChildren(...(Object.keys(frame.tables).length ? Object.keys(frame.tables).map((run) => this.table(frame, run, before[run] ?? [])) : [el('p', { class: 'hint' }, this.lab.words.pool.nobody)]))
    this.blocks.replaceChildren(...Array.from({ length: count }, (_, block) => this.block(frame, block, before)))
    const held = count - frame.free
    const alone = Object.values(frame.tables).reduce((sum, table) => sum + table.length, 0)
    setText(this.count, fill(this.lab.words.pool.count, { held, count, free: frame.free, alone }))
    Object.assign(this.count.dataset, { held, alone })
  }

  sentence(frame) {
    const { what, run, of = '', taken = 0, blocks = [], tables, lengths } = frame
    const { words } = this.lab
    const n = lengths[run] ?? 0
    const values = { run, of, taken, n, from: blocks[0], to: blocks[1], count: tables[run]?.length ?? 0, block: tables[run]?.at(-1), size: this.scene.size, blocks: this.scene.count }
    return fill(words.pool.frames[what === 'grows' && !run ? 'writes' : what], values)
  }

  table({ tables, lengths }, run, before) {
    const chips = tables[run].map((block, place) => el('span', { class: before[place] === block ? '' : 'fresh' }, String(block)))
    return el('div', { class: `table run-${run}`, 'data-table': run, 'data-blocks': JSON.stringify(tables[run]), 'data-length': lengths[run] },
      el('b', {}, run), el('span', { class: 'chips-row' }, ...chips), el('small', {}, fill(this.lab.words.pool.positions, { n: number(lengths[run]) })))
  }

  block(frame, block, before) {
    const { size, tokens } = this.scene
    const holders = Object.entries(frame.tables).filter(([, table]) => table.includes(block))
    const runs = holders.map(([run]) => run)
    let [full, text] = [0, '']
    for (const [run, table] of holders) {
      const start = table.indexOf(block) * size
      const stop = Math.min(frame.lengths[run], start + size)
      if (stop - start > full) [full, text] = [stop - start, visible(tokens[run].slice(start, stop).join(''))]
    }
    const fresh = runs.some((run) => !(before[run] ?? []).includes(block))
    return el('div', {
      class: ['block', runs.length ? `run-${runs[0]}` : 'free', runs.length > 1 && `shared with-${runs[1]}`, fresh && 'fresh'].filter(Boolean).join(' '),
      'data-block': block, 'data-runs': runs.join(''), 'data-full': full, title: text,
    }, el('b', {}, String(block), runs.length ? el('em', {}, runs.join(' + ')) : ''), el('span', { dir: 'auto' }, text), el('i', {}, el('i', { style: `width: ${(100 * full) / size}%` })))
  }
}
