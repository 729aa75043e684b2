/** Smaller notes: one real group of 64 numbers squeezed, the bytes, the error of every layer, and when a fact is lost. */
import { el, fill, rich, setText, tag } from '../../scene/dom.js'
import { bytes, number, percent } from '../../scene/text.js'
import { Group } from './group.js'
import { answers, bits, choose, strip } from '../lab/kept_answers.js'
import { mountLab } from '../lab/lab.js'
import { noteBytes, notesAt } from '../shared/cost.js'

const CSS = new URL('../lab/kept.css', import.meta.url).href
const WAYS = ['fp8', 'int8', 'int4', 'int2']
const COUNTED = ['int8', 'int4', 'int2']

export const mount = (element, options) => mountLab(element, options, (lab) => {
  const desk = { lab, words: lab.words, scene: lab.scene, paper: null, way: 'int4' }
  const measured = new Measured(desk)
  const proof = new Proof(desk)
  return { first: 'idea', idea: new Group(desk), measured, problem: new Problem(desk), proof }
})

class Problem {
  constructor(desk) {
    this.desk = desk
    this.text = el('p', { class: 'told' })
    this.chart = desk.lab.chart('smaller-notes-bytes')
    this.root = el('div', {}, el('link', { rel: 'stylesheet', href: CSS }), this.text, this.chart.root)
  }

  show() {
    const { lab, words } = this.desk
    const { facts, events } = lab
    const last = events.filter(({ kv }) => kv).at(-1)?.kv
    if (!facts || !last) return setText(this.text, words.problem.none)
    const all = notesAt(facts, facts.context) * noteBytes(facts)
    const values = { n: number(last.length), bytes: bytes(last.bytes), value: number(8 * facts.value_bytes), context: number(facts.context), all: bytes(all), weights: bytes(facts.weight_bytes) }
    this.text.replaceChildren(...rich(words.problem.told, values))
    this.chart.show({ run: lab.options.run })
    return undefined
  }
}

class Measured {
  constructor(desk) {
    this.desk = desk
    const { words } = desk
    this.table = el('div', { class: 'wide' })
    this.times = desk.lab.chart('smaller-notes-times')
    this.errors = desk.lab.chart('smaller-notes-error')
    this.root = el('div', {}, el('div', { class: 'two' }, el('div', {}, el('h3', {}, words.times), this.times.root), el('div', {}, el('h3', {}, words.error.title), this.errors.root)),
      el('p', { class: 'hint' }, words.error.lead), this.table)
  }

  show() {
    const { lab, words } = this.desk
    const [, paper] = Object.entries(lab.figures?.papers ?? {})[0] ?? []
    const ways = WAYS.filter((way) => paper?.ways[way])
    this.root.hidden = !ways.length
    if (!ways.length) return
    const measured = () => lab.tag()
    const cell = (name, value, text) => el('td', { 'data-cell': name, 'data-value': value }, text, ' ', measured())
    const row = (way) => {
      const told = paper.ways[way]
      return el('tr', { 'data-way': way }, el('th', { scope: 'row' }, words.ways[way]), cell('bytes', told.bytes, bytes(told.bytes)),
        el('td', {}, fill(words.table.parts, { codes: bytes(told.codes), scales: bytes(told.scales) })), cell('share', told.share, percent(told.share)),
        cell('kl', told.kl_mean, bits(told.kl_mean)), cell('agreed', told.agreed, percent(told.agreed)), cell('slower', told.slower ?? '', told.slower ? `× ${number(told.slower, 2)}` : '–'))
    }
    const [first] = ways
    this.table.replaceChildren(el('table', { class: 'kept' },
      el('thead', {}, el('tr', {}, ...['way', 'bytes', 'parts', 'share', 'kl', 'agreed', 'slower'].map((name) => el('th', { scope: 'col' }, words.heads[name])))),
      el('tbody', {}, el('tr', {}, el('th', { scope: 'row' }, words.ways.exact), el('td', { 'data-cell': 'bytes', 'data-value': paper.ways[first].exact_bytes }, bytes(paper.ways[first].exact_bytes), ' ', measured()),
        el('td', {}, '–'), el('td', {}, '100%'), el('td', {}, '0'), el('td', {}, '100%'), el('td', {}, '× 1')), ...ways.map(row))))
    for (const chart of [this.times, this.errors]) lab.draw(chart)
  }
}

class Proof {
  constructor(desk) {
    this.desk = desk
    this.lost = el('div', { class: 'wide' })
    this.pick = el('div', { class: 'row options' })
    this.paper = el('p', { class: 'exam-paper', dir: 'auto' })
    this.answers = el('div', {})
    this.strip = el('div', {})
    this.root = el('div', {}, this.lost, this.pick, this.paper, this.answers, el('p', { class: 'hint' }, desk.words.strip), this.strip)
  }

  show() {
    const { lab, words } = this.desk
    const papers = lab.figures?.papers ?? {}
    const names = Object.keys(papers).filter((name) => Object.keys(papers[name].ways).length)
    this.root.hidden = !names.length
    if (!names.length) return
    this.desk.paper = names.includes(this.desk.paper) ? this.desk.paper : names[0]
    const paper = papers[this.desk.paper]
    this.drawLost(names, papers)
    const ways = WAYS.filter((way) => paper.ways[way])
    if (!ways.includes(this.desk.way)) [this.desk.way] = ways
    const again = (name) => (value) => { this.desk[name] = value; this.show() }
    this.pick.replaceChildren(choose('paper', words.paper, names.map((name) => [name, words.papers[name]]), this.desk.paper, again('paper')))
    setText(this.paper, paper.prompt)
    this.answers.replaceChildren(answers(this.desk, ways.map((way) => ({ name: way, label: words.ways[way], told: paper.ways[way] }))))
    this.strip.replaceChildren(choose('way', words.way, ways.map((way) => [way, words.ways[way]]), this.desk.way, again('way')), strip(this.desk, paper.ways[this.desk.way]))
  }

  /** At how many bits is the fact lost? */
  drawLost(names, papers) {
    const { words } = this.desk
    const cell = (told) => (told ? el('td', { class: `right ${told.right}` }, words[told.right ? 'right' : 'wrong']) : el('td', {}, '–'))
    const says = ({ known, lost }) => (lost ? fill(words.survives.at, { way: words.ways[lost] }) : words.survives[known ? 'never' : 'unknown'])
    this.lost.replaceChildren(el('table', { class: 'lost' },
      el('thead', {}, el('tr', {}, el('th', {}, words.survives.title), ...COUNTED.map((way) => el('th', { scope: 'col' }, words.ways[way])), el('th', {}))),
      el('tbody', {}, ...names.map((name) => el('tr', { 'data-paper': name, 'data-lost': papers[name].lost ?? '' },
        el('th', { scope: 'row' }, words.papers[name]), ...COUNTED.map((way) => cell(papers[name].ways[way])), el('td', {}, el('b', {}, says(papers[name]))))))))
  }
}
