/**
 * PagedAttention: what this run set aside and did not use, the blocks of several runs stepped through, room and time by
 * block size as measured here, and the proof that the words are the same.
 */
import { el, fill, rich, setText, tag } from '../../scene/dom.js'
import { bytes, number, percent } from '../../scene/text.js'
import { mountLab } from '../lab/lab.js'
import { PoolView } from './pool.js'

export const mount = (element, options) => mountLab(element, options, (lab) =>
  ({ first: 'idea', idea: new PoolView(lab), measured: new Measured(lab), problem: new Problem(lab), proof: new Proof(lab) }))

/** The run on show: what its cache had in the end, and what had been set aside for it. */
class Problem {
  constructor(lab) {
    this.lab = lab
    this.told = el('p', { class: 'figures', 'data-problem': '' })
    this.chart = lab.chart('paged-own')
    this.root = el('div', {}, this.told, this.chart.root)
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
    this.chart.show({ run: this.lab.options.run })
  }
}

/** Room by block size for each paper, then all; a word's time by block size. */
class Measured {
  constructor(lab) {
    this.lab = lab
    const { words } = lab
    this.rooms = lab.chart('paged-room')
    this.papers = el('p', { class: 'hint' })
    this.total = el('p', { class: 'verdict', 'data-total': '' })
    this.times = lab.chart('paged-time')
    this.room = el('div', { hidden: true }, el('h3', {}, words.room.title), this.rooms.root, this.papers, this.total, el('p', { class: 'hint' }, words.room.lead))
    this.time = el('div', { hidden: true }, el('h3', {}, words.time.title), this.times.root, el('p', { class: 'hint' }, words.time.lead))
    this.root = el('div', {}, this.room, this.time)
  }

  show() {
    const { figures, words } = this.lab
    this.room.hidden = !figures?.room.papers.length
    this.time.hidden = !figures?.time.length
    if (!figures) return
    const { papers } = figures.room
    for (const chart of [...(papers.length ? [this.rooms] : []), ...(figures.time.length ? [this.times] : [])]) this.lab.draw(chart)
    setText(this.papers, papers.map(({ paper, prompt, answer, limit }) => `${words.papers[paper]}: ${fill(words.room.paper, { prompt: number(prompt), answer: number(answer), limit: number(limit) })}`).join(' · '))
    const { total } = figures.room
    if (total) {
      const [before, after] = [total.contiguous, total['16']]
      Object.assign(this.total.dataset, { before: before.allocated, after: after.allocated, used: after.used })
      this.total.replaceChildren(fill(words.room.total, {
        n: figures.room.papers.length, before: bytes(before.allocated), share: percent(before.used), after: bytes(after.allocated), left: percent(after.used), times: number(before.allocated / after.allocated, 1),
      }), ' ', this.lab.tag())
    }
  }
}

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
