/**
 * Station two: the whole paper is read at once. Where every token looked, which heads join two words, what each layer
 * would have said. A run is looked at when it is over; a choice of layer, head or word asks for bytes and draws them.
 */
import { el, fill } from '../../scene/dom.js'
import { visible } from '../../scene/text.js'
import { Explorer } from './attention.js'
import { Chips } from '../shared/chips.js'
import { Experiment } from './experiment.js'
import { Followed } from '../shared/followed.js'
import { Ranking, Small } from './heads.js'
import { Pass } from './pass.js'
import { Lengths } from './lengths.js'
import { Off } from './off.js'
import { loaded, mountStation, part, stylesheet } from '../shared/station.js'
import { WordOne } from './word_one.js'

const CSS = new URL('prefill.css', import.meta.url).href

export const mount = (element, options) => mountStation(element, options, (station) => new Prefill(station))

class Prefill {
  constructor(station) {
    this.station = station
    this.options = station.options
    this.words = station.words
    this.parts = []
    this.run = new Followed(station, { take: (events) => this.take(events), over: (finished) => this.over(finished), again: true })
    this.api = this.run.api
    const { words } = this
    this.pass = el('div')
    this.looks = el('div')
    this.first = el('div')
    this.heads = el('div')
    this.length = el('div')
    this.experiment = new Experiment({
      words, errors: this.options.errors, base: this.options.base ?? '', lang: this.options.lang, papers: this.options.papers,
      onOpen: (run) => this.options.onRun(run),
    })
    this.sheet = stylesheet(CSS)
    this.root = el('div', { class: 'body prefill' }, this.sheet, this.run.line,
      part(words, 'pass', this.pass),
      part(words, 'map', el('p', {}, words.map.lead), this.looks),
      part(words, 'why', ...['mean', 'sink', 'causal'].map((name) => el('p', {}, words.why[name])), this.experiment.root),
      part(words, 'off', this.heads),
      part(words, 'word', this.first),
      part(words, 'length', this.length))
  }

  close() {
    this.closed = true
    this.experiment.close()
    this.passed?.close()
    this.parts.forEach((part) => part.close?.())
  }

  /** A change of language keeps what was chosen. */
  kept() {
    return this.desk?.choice
  }

  async start() {
    await loaded(this.sheet)
    await this.run.start()
  }

  take(events) {
    for (const event of events) {
      if (event.type === 'started') {
        this.passed = new Pass({ words: this.words, scene: this.options.scene, base: this.options.base ?? '', lang: this.options.lang, run: this.options.run }, event)
        this.pass.replaceChildren(this.passed.root)
      }
      if (event.type === 'layer' || event.type === 'prefilled') this.passed?.take(event)
    }
    if (events.some(({ type }) => type === 'started' || type === 'layer' || type === 'prefilled')) this.passed?.draw()
  }

  over(finished) {
    const { started, events } = this.run
    const chose = events.filter((event) => event.type === 'chose')
    this.run.ending(finished, chose.length > 0)
    if (chose.length) this.lay(started, chose)
  }

  /** The run is over: its map, its words, its heads. */
  lay(started, chose) {
    const { words, api } = this
    const tokens = [...started.prompt, ...chose.slice(0, -1).map((event) => event.token)]
    const name = (position) => visible(tokens[position]?.text ?? '')
    this.desk = {
      words, api, tokens, prompt: started.prompt.length, length: tokens.length, facts: started.facts, chose: chose[0],
      short: (position) => Array.from(name(position)).slice(0, 10).join(''),
      label: (position) => `“${name(position)}” (${position + 1})`,
      choice: {
        row: started.prompt.length - 1, column: null, hideSink: true, stretch: false, ...this.firstLook(started),
        ...this.options.kept,
      },
      onCell: (row, column) => this.choose({ row, column }),
      onChip: (position) => this.pick(position),
      onHead: (layer, head) => this.choose({ layer, head }),
    }
    const { desk } = this
    this.explorer = new Explorer(desk)
    this.chips = new Chips(desk)
    this.ranking = new Ranking(desk)
    this.small = new Small(desk)
    this.parts = [this.explorer, this.small]
    const beside = el('div', {}, el('p', { class: 'caption' }, words.chips.lead), this.chips.root, el('h3', {}, words.pair.title), this.ranking.root)
    this.looks.replaceChildren(this.controls(), el('div', { class: 'twin' }, this.explorer.root, beside),
      el('h3', {}, words.small.title), el('p', {}, words.small.lead), this.small.root)
    this.first.replaceChildren(new WordOne(desk).root)
    this.more(started, chose[0].at)
    this.choose({ row: desk.choice.row })
  }

  /** What can be tried with this very paper: heads switched off, and its beginnings read. */
  more(started, ttft) {
    const { words, desk, options } = this
    const { summary, events } = this.run
    const { base = '', lang, errors, run, scene, examples } = options
    const recorded = Boolean(summary?.recorded)
    const common = { words, scene, base, lang, errors, run, recorded, settings: started.settings }
    this.off = new Off({
      ...common, facts: started.facts, events, choice: desk.choice, ranking: this.ranking, onPage: (page) => options.onPage(page),
    })
    this.heads.replaceChildren(this.off.root)
    const long = examples.find((example) => example.id === 'long-paper')?.settings
    this.lengths = new Lengths({
      ...common, api: this.api, prompt: desk.prompt, ttft: recorded || !started.prompt.length ? null : ttft,
      onLong: long && long.prompt !== started.settings.prompt ? () => this.run.again(long) : null,
    })
    this.length.replaceChildren(this.lengths.root)
    this.parts.push(this.off, this.lengths)
  }

  /** Where to look first: as the address says, as the example wants, as the run's own copying head. */
  firstLook({ prompt, settings, facts }) {
    const { moment, examples } = this.options
    const example = examples.flatMap((one) => [one, ...one.variants]).find((one) => one.settings.prompt === settings.prompt)
    const asked = Number.isInteger(moment?.layer) ? moment : null
    const lens = example?.settings.mode === settings.mode ? example.lens : null
    const { layer, head } = asked ?? lens ?? this.run.summary?.lens ?? { layer: facts.layers >> 1, head: null }
    const place = (word) => prompt.findIndex((token) => token.text.trim() === word)
    const pair = example?.look ? { row: place(example.look.from), column: place(example.look.to) } : {}
    return { layer, head, ...(pair.row > pair.column && pair.column >= 0 ? pair : {}) }
  }

  controls() {
    const { words, desk } = this
    const { layers, heads } = desk.facts
    const select = (name, options, choose) =>
      el('label', {}, words.map[name], el('select', { 'data-choose': name, onchange: ({ target }) => choose(target.value) },
        ...options.map(([key, text]) => el('option', { value: key }, text))))
    const count = (n) => Array.from({ length: n }, (_, index) => [index, String(index + 1)])
    const check = (name, flag) =>
      el('label', {}, el('input', { type: 'checkbox', 'data-choose': name, checked: desk.choice[flag], onchange: ({ target }) => this.choose({ [flag]: target.checked }) }), words.map[name])
    const layer = select('layer', count(layers), (value) => this.choose({ layer: Number(value) }))
    const head = select('head', [['mean', fill(words.map.mean, { n: heads })], ...count(heads)],
      (value) => this.choose({ head: value === 'mean' ? null : Number(value) }))
    this.choosers = [layer, head].map((label) => label.querySelector('select'))
    return el('div', { class: 'row options' }, layer, head, check('hide_sink', 'hideSink'), check('stretch', 'stretch'))
  }

  /** A chip was clicked: the first one's looks are shown; with a second one the two are a pair. */
  pick(position) {
    const { row, column } = this.desk.choice
    if (column !== null || row === position || !this.picked) {
      this.picked = true
      return this.choose({ row: position, column: null })
    }
    this.choose({ row: Math.max(row, position), column: Math.min(row, position) })
  }

  choose(change) {
    const { desk } = this
    Object.assign(desk.choice, change)
    const { layer, head, row, column } = desk.choice
    this.choosers[0].value = layer
    this.choosers[1].value = head ?? 'mean'
    if ('layer' in change || 'head' in change) this.options.onMoment({ run: this.options.run, at: this.options.moment?.at, layer, head })
    if ('row' in change) {
      this.ranking.show().then(() => this.off.draw())
      this.explorer.reveal(row, column ?? 0)
    }
    this.ranking.mark()
    this.small.mark()
    this.off.draw()
    this.explorer.show()
    this.showRow()
  }

  /** The chosen row's exact weights, on the chips. */
  async showRow() {
    const { layer, head, row } = this.desk.choice
    const key = `${layer}.${head}.${row}`
    this.rowKey = key
    if (this.row?.key !== key) {
      this.chips.draw(null)
      const found = await this.api.row({ layer, head, row }).catch(() => ({ weights: null })) // the map says why
      this.row = { key, ...found }
    }
    if (this.rowKey === key && !this.closed) this.chips.draw(this.row.weights)
  }
}
