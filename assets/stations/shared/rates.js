// @ts-check
/** Tokens per word of each sample text, for every tokenizer that is here. Words are counted by the browser. */
import { el, fill, setText, tag } from '../../scene/dom.js'
import { number } from '../../scene/text.js'

/**
 * @import {Refusal} from '../../scene/source.js'
 * @import {Options, Station} from './station.js'
 *
 * @typedef {'english' | 'chinese' | 'numbers' | 'code' | 'emoji'} Sample
 * @typedef {typeof import('../../words/en/tokenise.json')} Words
 * @typedef {Options & {words: Options['words'] & Words, texts: {id: string, text: string}[]}} TokeniseOptions
 * @typedef {{name: string, title: string}} Model
 * @typedef {{id: Sample, words: number, characters: number, counts: number[]}} Line
 */

/** @type {Sample[]} */
const TOLD = ['english', 'chinese', 'numbers', 'code', 'emoji']

export class Rates {
  /** @param {Station<TokeniseOptions>} station */
  constructor(station) {
    this.station = station
    this.shown = ''
    this.table = el('table', { 'data-rates': '' })
    this.note = el('p', { class: 'hint' }, station.words.rates_note, ' ', tag(station.options.scene, 'computed'))
    const { rates, rates_sub } = station.words
    this.root = el('section', { class: 'sheet', 'aria-label': rates },
      el('header', {}, el('h2', {}, rates, el('span', {}, rates_sub))), el('div', { class: 'wide' }, this.table), this.note)
  }

  /** Have the samples cut by each of `models`, one after another: others want their words too. @param {Model[]} models */
  async show(models) {
    const key = models.map((model) => model.name).join()
    if (!models.length || key === this.shown) return
    this.shown = key
    const { words, options } = this.station
    /** @type {Line[]} */
    const rows = []
    try {
      for (const id of TOLD) {
        const text = options.texts.find((one) => one.id === id)?.text ?? ''
        const counts = []
        for (const model of models) counts.push(await this.count(text, model.name))
        rows.push({ id, ...lengths(text, id === 'chinese' ? 'zh' : 'en'), counts })
      }
    } catch (refusal) {
      this.shown = ''
      return setText(this.note, /** @type {Refusal} */ (refusal).message)
    }
    if (this.station.closed) return
    const head = [words.sample, words.words, words.characters, ...models.map((model) => model.title)]
    this.table.dataset.rates = JSON.stringify(rows)
    this.table.replaceChildren(el('thead', {}, el('tr', {}, ...head.map((name) => el('th', { scope: 'col' }, name)))),
      el('tbody', {}, ...rows.map((row) => this.line(row))))
  }

  /** @param {string} text @param {string} model */
  async count(text, model) {
    /** @type {{own_start: number, own_stop: number}} */
    const { own_start, own_stop } = await this.station.ask('tokenise', { text, model })
    return own_stop - own_start
  }

  /** @param {Line} row */
  line({ id, words, characters, counts }) {
    const told = this.station.words
    /** @param {number} count */
    const per = (count) => words
      ? fill(told.per_word, { n: number(count / words, 1) })
      : fill(told.per_character, { n: number(count / characters, 1) })
    return el('tr', {}, el('th', { scope: 'row' }, told[`text_${id}`]), el('td', {}, words ? String(words) : '–'), el('td', {}, String(characters)),
      ...counts.map((count) => el('td', {}, el('b', {}, String(count)), ` ${per(count)}`)))
  }
}

/** Words and characters as a reader counts them: an emoji made of several code points is one. @param {string} text @param {string} lang */
export function lengths(text, lang) {
  /** @param {'word' | 'grapheme'} granularity */
  const pieces = (granularity) => [...new Intl.Segmenter(lang, { granularity }).segment(text)]
  return { words: pieces('word').filter((piece) => piece.isWordLike).length, characters: pieces('grapheme').length }
}
