/** What the notes take: measured beside computed, set aside against used, at a moment and growing over the run. */
import { el, fill, setText, svg, tag } from '../../scene/dom.js'
import { bytes, number } from '../../scene/text.js'
import { keptBy, noteBytes, notesAt } from '../shared/cost.js'

const [WIDE, HIGH, LEFT, FOOT] = [520, 190, 62, 22]

export class Ledger {
  /** `desk`: {words, scene (for the tags), trace, choice, now() (the state), time() (null: the newest), onMoment(at), recorded()}. */
  constructor(desk) {
    this.desk = desk
    this.taken = null
    this.table = el('table', { class: 'ledger' })
    this.verdict = el('p', { 'data-bytes': true, 'aria-live': 'off' })
    this.tensors = el('p', { class: 'caption', 'data-taken': true })
    this.curve = el('div', { class: 'curve' })
    this.slider = el('input', { type: 'range', min: 0, max: 0, value: 0, 'aria-label': desk.words.bytes.moment, 'data-choose': 'moment', oninput: () => desk.onMoment(this.moments()[+this.slider.value].at) })
    this.when = el('output')
    this.strip = el('label', { class: 'moment strip', hidden: true }, desk.words.bytes.moment, this.slider, this.when)
    this.root = el('div', { class: 'twin even' },
      el('div', {}, el('div', { class: 'wide' }, this.table), this.verdict, this.tensors), this.curve)
  }

  /** The newest moment that is not after `at` seconds. */
  momentOf(at) {
    return this.moments().findLastIndex((moment) => moment.at <= at + 1e-6)
  }

  /** What the engine read off the tensors, where it still holds them. */
  tell(taken) {
    this.taken = taken
    this.draw()
  }

  /** Moments at which the bytes changed: before the paper is read, then each part of it, then each word. */
  moments() {
    const { trace } = this.desk
    if (this.counted !== trace.events.length) {
      this.counted = trace.events.length
      this.known = [{ at: 0, length: 0, bytes: 0, allocated: 0, written: 0 }]
      trace.events.forEach((event) => {
        if (!event.kv) return
        this.known.push({ at: event.at, ...event.kv, written: Math.max(0, event.kv.length - trace.prompt) })
      })
    }
    return this.known
  }

  draw() {
    const { desk } = this
    const { trace, words } = desk
    if (!trace.started) return
    const moments = this.moments()
    const time = desk.time()
    const index = time === null ? moments.length - 1 : this.momentOf(time)
    const now = moments[index]
    this.slider.max = moments.length - 1
    this.slider.value = index
    const { layers } = desk.now()
    const when = layers ? 'reading' : !now.length ? 'before' : now.length < trace.prompt ? 'after_part' : now.written ? 'after_word' : 'after_read'
    setText(this.when, fill(words.bytes[when], { n: now.written, layer: layers, time: `${number(time ?? now.at, 2)} s`, columns: number(now.length) }))
    this.rows(now, moments, index)
    this.plot(moments, index)
  }

  rows(now, moments, index) {
    const { words, trace, choice, scene, recorded } = this.desk
    const { facts } = trace
    const one = noteBytes(facts)
    const kept = keptBy(facts, choice.layer, now.length)
    const kind = recorded() ? 'recorded' : 'measured'
    const formula = `2 × ${facts.kv_heads} × ${facts.head_size} × ${facts.value_bytes}`
    const slid = notesAt(facts, now.length) !== notesAt(facts, now.length, false)
    const before = moments[index - 1]
    const step = now.written && before.length + 1 === now.length ? now.bytes - before.bytes : null
    const capacity = Math.min(trace.prompt + trace.started.settings.max_new_tokens, facts.context)
    const whole = notesAt(facts, capacity, false) * one
    const total = notesAt(facts, now.length) * one
    const held = this.taken && index === moments.length - 1 ? this.taken.layers[choice.layer] : null
    const rows = [
      ['note', null, one, formula],
      ['column', step, notesAt(facts, now.length) * one - notesAt(facts, now.length - 1) * one, slid ? words.bytes.column_slid : `${facts.layers} × ${number(one)}`],
      ['layer', held, kept * one, `${number(kept)} × ${number(one)}`, { layer: choice.layer + 1 }],
      ['total', now.length ? now.bytes : null, total, `${number(notesAt(facts, now.length))} × ${number(one)}`, { n: number(now.length) }],
      ['allocated', now.length ? now.allocated : null, whole, `${number(capacity)} × ${facts.layers} × ${number(one)}`, { n: number(capacity) }],
    ]
    if (!now.length) rows[1][2] = facts.layers * one
    const head = el('thead', {}, el('tr', {}, el('th', {}, words.bytes.unit), el('th', {}, tag(scene, kind)), el('th', {}, tag(scene, 'computed'))))
    const body = rows.map(([name, measured, computed, formula, values]) =>
      el('tr', { 'data-row': name, 'data-measured': measured ?? '', 'data-computed': computed },
        el('td', {}, fill(words.bytes[name], values), el('span', { class: 'formula' }, formula)),
        el('td', {}, measured === null ? '–' : el('b', {}, number(measured))),
        el('td', { class: measured !== null && measured !== computed ? 'differs' : '' }, el('b', {}, number(computed)))))
    this.table.replaceChildren(head, el('tbody', {}, ...body))
    const equal = rows.every(([, measured, computed]) => measured === null || measured === computed)
    Object.assign(this.verdict.dataset, { bytes: now.bytes, allocated: now.allocated, columns: now.length, at: now.at, equal })
    setText(this.verdict, !now.length ? words.bytes.empty : fill(equal ? words.bytes.equal : words.bytes.differs, {
      used: bytes(now.bytes), allocated: bytes(now.allocated), share: `${Math.round((100 * now.bytes) / now.allocated)}%`,
    }))
    this.verdict.classList.toggle('trouble', !equal)
    this.sayTensors(facts)
  }

  /** The tensors' own word, and what is kept beside the KV cache. */
  sayTensors(facts) {
    const { taken, desk } = this
    const { words } = desk
    this.tensors.hidden = !taken
    if (!taken) return
    const used = taken.layers.reduce((sum, one) => sum + one, 0)
    Object.assign(this.tensors.dataset, { used, allocated: taken.allocated, held: taken.held, queries: taken.queries, length: taken.length })
    setText(this.tensors, [
      fill(words.bytes.tensors, { used: number(used), allocated: number(taken.allocated), queries: bytes(taken.queries) }),
      taken.held > used ? fill(words.bytes.held, { n: bytes(taken.held - used) }) : facts.window ? words.bytes.not_slid : '',
    ].join(' '))
  }

  /** Bytes over the run's own time: one jump for the paper, one stair a word; the dashed line is what was set aside. */
  plot(moments, index) {
    const { words, trace } = this.desk
    const end = Math.max(trace.end, 1e-9)
    const most = Math.max(1, ...moments.map((moment) => Math.max(moment.allocated, moment.bytes)))
    const x = (at) => LEFT + ((WIDE - LEFT - 10) * at) / end
    const y = (count) => HIGH - FOOT - ((HIGH - FOOT - 16) * count) / most
    const stairs = (list, until) => list.map(({ at, bytes }, i) => `${i ? `H${x(at)}` : `M${x(at)}`} ${i ? 'V' : ','}${y(bytes)}`).join(' ') + ` H${x(until)}`
    const read = moments.findIndex((moment) => moment.length >= trace.prompt)
    const paper = moments.slice(0, read < 0 ? moments.length : read + 1)
    const line = (path, kind) => svg('path', { d: path, class: kind })
    const area = (list, until, kind) => line(`${stairs(list, until)} V${y(0)} H${x(list[0].at)} Z`, kind)
    const written = read < 0 ? [] : moments.slice(read)
    const readEnd = read < 0 ? end : moments[read].at
    const text = (at, height, words, anchor = 'start', kind = '') => svg('text', { x: at, y: height, 'text-anchor': anchor, class: kind }, words)
    const now = moments[index]
    const allocated = moments.at(-1).allocated
    const begun = moments[1]?.at ?? end
    this.curve.replaceChildren(svg('svg', { viewBox: `0 0 ${WIDE} ${HIGH}`, role: 'img', 'aria-label': words.bytes.curve, 'data-curve': moments.length - 1 },
      svg('path', { d: `M${LEFT} ${y(0)} H${WIDE - 10}`, class: 'axis' }),
      area(paper, readEnd, 'read'), ...(written.length ? [area(written, end, 'write'), line(stairs(written, end), 'write-line')] : []),
      ...(allocated ? [line(`M${x(begun)} ${y(allocated)} H${x(end)}`, 'allocated'),
        text(x(end), y(allocated) - 5, fill(words.bytes.allocated_line, { n: bytes(allocated) }), 'end', 'faint')] : []),
      text(LEFT - 6, y(moments.at(-1).bytes) + 4, bytes(moments.at(-1).bytes), 'end'),
      ...(written.length ? [text(x(readEnd) + 6, y(moments[read].bytes) + 20, fill(words.bytes.jump, { n: number(trace.prompt) }), 'start', 'jump')] : []),
      text(LEFT - 6, y(0) + 4, '0', 'end'),
      text(x(0), HIGH - 5, '0 s'), text(x(end), HIGH - 5, `${number(end, 2)} s`, 'end'),
      svg('path', { d: `M${x(now.at)} ${y(0)} V10`, class: 'now' }),
      svg('circle', { cx: x(now.at), cy: y(now.bytes), r: 4.5, class: 'now' })))
  }
}
