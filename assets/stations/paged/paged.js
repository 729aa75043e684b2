/**
 * PagedAttention: what this run set aside and did not use, the blocks of several runs stepped through, room and time by
 * block size as measured here, and the proof that the words are the same.
 */
import { el, fill, rich, setText, tag } from '../../scene/dom.js'
import { bytes, duration, number, percent } from '../../scene/text.js'
import { mountLab } from '../lab/lab.js'
import { bars } from '../lab/bars.js'
import { PoolView } from './pool.js'
import { rooms } from './room.js'

const time = (seconds) => duration(seconds).join(' ')
const MARK = { contiguous: 'before' }

export const mount = (element, options) => mountLab(element, options, (lab) =>
  ({ problem: new Problem(lab), idea: new PoolView(lab), measured: new Measured(lab), proof: new Proof(lab) }))

const used = (held, all) => `${bytes(held)} / ${bytes(all)} · ${percent(held / all)}`

/** The run on show: what its cache had in the end, and what had been set aside for it. */
class Problem {
  constructor(lab) {
    this.lab = lab
    this.told = el('p', { class: 'figures', 'data-problem': '' })
    this.bar = el('div')
    this.root = el('div', {}, this.told, this.bar)
  }

  show() {
    const { words, events, scene, summary, started } = this.lab
    const kv = events.findLast((event) => event.kv)?.kv
    if (!kv || !started) return
    const source = () => tag(scene, summary?.recorded ? 'recorded' : 'measured', true)
    Object.assign(this.told.dataset, { bytes: kv.bytes, allocated: kv.allocated, positions: kv.length })
    this.told.replaceChildren(...rich(words.problem.told, {
      prompt: number(started.prompt.length), limit: number(started.settings.max_new_tokens), n: number(kv.length), bytes: bytes(kv.bytes), allocated: bytes(kv.allocated), share: percent(1 - kv.bytes / kv.allocated),
    }), ' ', source())
    this.bar.replaceChildren(rooms([{ label: words.problem.own, sides: [{ name: 'own', mark: 'before', label: words.ways.contiguous, used: kv.bytes, all: kv.allocated }] }], { say: used, tag: source }))
  }
}

/** Room by block size for each paper, then all; a word's time by block size. */
class Measured {
  constructor(lab) {
    this.lab = lab
    const { words } = lab
    this.rooms = el('div')
    this.total = el('p', { class: 'verdict', 'data-total': '' })
    this.times = el('div')
    this.room = el('div', { hidden: true }, el('h3', {}, words.room.title), el('p', { class: 'hint' }, words.room.lead), this.rooms, this.total)
    this.time = el('div', { hidden: true }, el('h3', {}, words.time.title), el('p', { class: 'hint' }, words.time.lead), this.times)
    this.root = el('div', {}, this.room, this.time)
  }

  way(name) {
    const { ways } = this.lab.words
    return name === 'contiguous' ? ways.contiguous : fill(ways.blocks, { n: name })
  }

  show() {
    const { figures, words } = this.lab
    this.room.hidden = !figures?.room.papers.length
    this.time.hidden = !figures?.time.length
    if (!figures) return
    const measured = () => this.lab.tag()
    const sides = (ways, prefix) => order(ways).map((way) => ({ name: `${prefix}-${way}`, mark: MARK[way] ?? 'after', label: this.way(way), used: ways[way].bytes, all: ways[way].allocated }))
    this.rooms.replaceChildren(rooms(figures.room.papers.map((one) => ({
      label: el('span', {}, words.papers[one.paper], el('small', {}, fill(words.room.paper, { prompt: number(one.prompt), answer: number(one.answer), limit: number(one.limit) }))), sides: sides(one.ways, one.paper),
    })), { say: used, tag: measured }))
    const { total } = figures.room
    if (total) {
      const [before, after] = [total.contiguous, total['16']]
      Object.assign(this.total.dataset, { before: before.allocated, after: after.allocated, used: after.used })
      this.total.replaceChildren(fill(words.room.total, {
        n: figures.room.papers.length, before: bytes(before.allocated), share: percent(before.used), after: bytes(after.allocated), left: percent(after.used), times: number(before.allocated / after.allocated, 1),
      }), ' ', measured())
    }
    this.times.replaceChildren(bars(figures.time.map(({ n, ways, slower }) => ({
      label: fill(words.time.tokens, { n: number(n) }),
      sides: order(ways).map((way) => ({ name: `${n}-${way}`, mark: MARK[way] ?? 'after', label: this.way(way) + (slower[way] ? ` · × ${number(slower[way], 2)}` : ''), ...(ways[way] ?? { middle: null }) })),
    })), { say: time, tag: measured }))
  }
}

/** In one piece first, then by the blocks' size: whole numbers come first as keys. */
const order = (ways) => Object.keys(ways).sort((a, b) => (+a || 0) - (+b || 0))

class Proof {
  constructor(lab) {
    this.lab = lab
    this.told = el('p', { class: 'verdict', 'data-answers': '' })
    this.list = el('ul', { class: 'proofs' })
    this.root = el('div', {}, this.told, this.list)
  }

  show() {
    const { figures, words, common } = this.lab
    const answers = figures?.answers
    Object.assign(this.told.dataset, { same: answers?.same ?? '', of: answers?.of ?? '' })
    setText(this.told, answers ? fill(words.proof[answers.same === answers.of ? 'same' : 'differs'], answers) : common.unmeasured)
    this.list.replaceChildren(...(figures?.room.papers ?? []).map(({ paper, text, same }) =>
      el('li', { 'data-paper': paper, 'data-same': Object.values(same).every(Boolean) }, el('b', {}, words.papers[paper]), ' ', el('q', { dir: 'auto' }, text))))
  }
}
