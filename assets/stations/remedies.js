/**
 * The entry page of the remedies: one row each, and what it gained on this machine, from what is kept.
 *
 * Each row is [data-remedy=NAME] with data-gained (true or false) and data-values (JSON of the figures it tells).
 */
import { el, fill, rich, setText, tag } from '../scene/dom.js'
import { number } from '../scene/text.js'
import { mountStation } from './station.js'

const SHEETS = ['two_stages.css', 'lab.css'].map((name) => new URL(name, import.meta.url).href)
const AGAIN = 1500 // milliseconds until a model that is being loaded is asked for once more

export const mount = (element, options) => mountStation(element, options, (station) => new Remedies(station))

class Remedies {
  constructor(station) {
    this.station = station
    this.words = station.words
    this.options = station.options
    this.styled = SHEETS.map((href) => {
      const link = el('link', { rel: 'stylesheet', href })
      return [link, new Promise((resolve) => { link.onload = link.onerror = resolve })]
    })
    this.body = el('tbody')
    this.told = el('p', { class: 'hint', 'data-told': '', 'aria-live': 'polite' })
    const { columns } = this.words
    const heads = ['technique', 'problem', 'stage', 'plain', 'gained'].map((name) => el('th', { scope: 'col' }, columns[name]))
    this.root = el('div', { class: 'body stages lab remedies' }, ...this.styled.map(([link]) => link),
      el('section', { class: 'sheet' }, el('p', {}, this.words.lead), el('div', { class: 'wide' },
        el('table', {}, el('thead', {}, el('tr', {}, ...heads)), this.body)), this.told))
    this.draw([])
  }

  async start() {
    await Promise.all(this.styled.map(([, loaded]) => loaded))
    await this.look()
  }

  close() {
    this.closed = true
    clearTimeout(this.later)
  }

  async look() {
    try {
      this.draw((await this.station.ask('labs')).labs)
      setText(this.told, this.words.kept)
    } catch (problem) {
      setText(this.told, problem.message)
      if (problem.code === 'model_not_ready' && !this.closed) this.later = setTimeout(() => this.look(), AGAIN)
    }
  }

  draw(labs) {
    this.body.replaceChildren(...this.options.remedies.map((remedy) => this.row(remedy, labs.find(({ name }) => name === remedy.name))))
  }

  row({ name, stage, path }, lab) {
    const { columns, rows, stages } = this.words
    const { technique, problem, plain } = rows[name]
    const cell = (column, attributes, ...content) => el('td', { 'data-label': columns[column], ...attributes }, ...content)
    return el('tr', { 'data-remedy': name, 'data-gained': String(Boolean(lab?.gained)), 'data-values': JSON.stringify(lab?.gained ?? null) },
      el('th', { scope: 'row' }, path ? this.link(name, path, technique) : technique),
      cell('problem', {}, problem),
      cell('stage', {}, el('span', { class: `stage ${stage}` }, stages[stage])),
      cell('plain', { class: 'plain' }, plain),
      cell('gained', { class: 'gained' }, ...this.gained(name, path, lab)))
  }

  gained(name, path, lab) {
    const { words } = this
    if (!lab?.gained) return [words.unmeasured, ...(path ? [' ', this.link(name, path, words.measure)] : [])]
    const values = Object.fromEntries(Object.entries(lab.gained).map(([gap, value]) => [gap, typeof value === 'number' ? told(value) : value]))
    const when = new Date(lab.taken).toLocaleString(this.options.lang === 'zh' ? 'zh-CN' : 'en-GB', { dateStyle: 'medium', timeStyle: 'short' })
    return [...rich(words.gained[name], values), ' ', tag(this.options.scene, 'measured', true), el('small', {}, fill(words.when, { when }))]
  }

  /** A real link to a remedy's page, with the place; a plain click stays in this session. */
  link(name, path, text) {
    const query = { ...Object.fromEntries(new URLSearchParams(location.search)), lang: this.options.lang }
    return el('a', {
      href: `${path}?${new URLSearchParams(query)}`, 'data-to': name, onclick: (event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
        event.preventDefault()
        this.options.onPage({ name, query })
      },
    }, text)
  }
}

/** A figure as a person says it: whole from 100 on, one decimal below, two below 1. */
const told = (value) => (Number.isInteger(value) ? number(value) : number(value, value >= 100 ? 0 : value >= 1 ? 1 : 2))
