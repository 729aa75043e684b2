/**
 * Which positions are on show and where they stand: shared by the overview and the picture of one head, so that a
 * column stands under its own words in both. Positions count from 0 in here and from 1 in what people read.
 */
import { ticks } from '../shared/heat.js'

const LEAST = 8 // positions shown when nearest
const WORDS = 13 // pixels a column must have for its word to stand beside it
const ABOVE = { words: 74, numbers: 22 } // pixels

export class Columns {
  constructor() {
    this.total = 1
    this.view = null
    this.width = 0
    this.unit = 1 // of the page's type, 1 at 16 pixels
  }

  get gutter() {
    return Math.round(44 * this.unit)
  }

  get plot() {
    return Math.max(1, this.width - this.gutter - 2)
  }

  get seen() {
    const cells = Math.min(this.total, this.view?.cells ?? this.total)
    return { from: Math.max(0, Math.min(this.view?.from ?? 0, this.total - cells)), cells }
  }

  get step() {
    return this.plot / this.seen.cells
  }

  x(position) {
    return this.gutter + (position - this.seen.from) * this.step
  }

  /** The position under `x` pixels, or null. */
  at(x) {
    const { from, cells } = this.seen
    const place = (x - this.gutter) / this.step
    return place < 0 || place >= cells ? null : Math.min(this.total - 1, Math.floor(from + place))
  }

  zoom(factor, around) {
    const { from, cells } = this.seen
    const next = Math.round(Math.min(this.total, Math.max(Math.min(LEAST, this.total), cells * factor)))
    const middle = around ?? from + cells / 2
    this.view = next === this.total ? null : { cells: next, from: Math.round(middle - next / 2) }
  }

  fit() {
    this.view = null
  }

  move(by) {
    const { from, cells } = this.seen
    this.view = { cells, from: Math.round(Math.max(0, Math.min(this.total - cells, from + by))) }
  }

  /** Bring a position into the picture without changing more than is needed. */
  reveal(position) {
    const { from, cells } = this.seen
    if (position < from) this.move(position - from)
    else if (position >= from + cells) this.move(position - from - cells + 1)
  }

  get named() {
    return this.step >= WORDS * this.unit
  }

  /** Pixels that the axis takes. */
  get above() {
    return Math.round((this.named ? ABOVE.words : ABOVE.numbers) * this.unit)
  }

  /** The positions that have a mark on the axis. */
  ticks() {
    const { from, cells } = this.seen
    if (this.named) return Array.from({ length: cells }, (_, index) => from + index)
    return ticks(from, Math.min(this.total, from + cells), this.plot / (46 * this.unit)).map((position) => position - 1)
  }

  /** Words (or numbers, when there is no room) standing on `bottom`, written upwards into `height` pixels. */
  axis(context, look, tokens, prompt, bottom, height, chosen) {
    context.textBaseline = 'middle'
    for (const position of this.ticks()) {
      const token = tokens[position]
      const x = this.x(position) + this.step / 2
      const on = position === chosen
      context.fillStyle = on ? look.ink : token?.special ? look.special : position >= prompt ? look.decode : look.pencil
      context.font = `${on ? 700 : 400} ${(this.named ? 0.82 : 0.74) * look.size}px ${this.named ? look.serif : look.font}`
      if (this.named) standing(context, look.word(position), x, bottom - 4, height - 6, look.size)
      else if (x < this.width - 16 * this.unit) {
        context.textAlign = 'center'
        context.fillText(String(position + 1), x, bottom - 10 * this.unit)
      }
    }
  }
}

const UPRIGHT = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}，。：；？！、]+$/u

/** A word that stands on (x, bottom): letters turned upwards, characters of scripts that are written downwards stacked. */
export function standing(context, word, x, bottom, height, size) {
  if (UPRIGHT.test(word)) {
    const characters = Array.from(word)
    const each = Math.min(0.95 * size, height / characters.length)
    context.textAlign = 'center'
    characters.forEach((character, index) => context.fillText(character, x, bottom - (characters.length - index - 0.5) * each))
    return
  }
  context.save()
  context.translate(x, bottom)
  context.rotate(-Math.PI / 2)
  context.textAlign = 'left'
  context.fillText(word, 0, 0, height)
  context.restore()
}

/** A canvas of `width` × `height` CSS pixels, sharp on any screen: its context, scaled. */
export function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1
  canvas.width = Math.round(width * ratio)
  canvas.height = Math.round(height * ratio)
  canvas.style.width = `${width}px`
  canvas.style.height = `${height}px`
  const context = canvas.getContext('2d')
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  return context
}

/** Colours and fonts as the page has them now. */
export function lookOf(element, word) {
  const style = getComputedStyle(element)
  const colour = (name) => style.getPropertyValue(`--${name}`).trim()
  const names = ['ink', 'pencil', 'faint', 'ghost', 'edge', 'rule', 'graphite', 'prefill', 'decode', 'special', 'paper', 'pad', 'stop', 'mark', 'desk']
  return {
    ...Object.fromEntries(names.map((name) => [name, colour(name)])),
    ruleStrong: colour('rule-strong'), word, font: style.fontFamily, serif: colour('serif'), size: parseFloat(style.fontSize),
  }
}

/** The part of a note that slid out of its layer's window: hatched, with a torn edge. */
export function torn(context, look, left, right, top, bottom) {
  if (right <= left) return
  context.save()
  context.beginPath()
  context.rect(left, top, right - left, bottom - top)
  context.clip()
  context.strokeStyle = look.faint
  context.globalAlpha = 0.55
  context.lineWidth = 1
  context.beginPath()
  for (let x = left - (bottom - top); x < right; x += 5) {
    context.moveTo(x, bottom)
    context.lineTo(x + bottom - top, top)
  }
  context.stroke()
  context.restore()
  context.strokeStyle = look.stop
  context.lineWidth = 1.5
  context.beginPath()
  const teeth = Math.max(2, Math.round((bottom - top) / 3))
  for (let tooth = 0; tooth <= teeth; tooth++) {
    const y = top + ((bottom - top) * tooth) / teeth
    const x = right + (tooth % 2 ? 2 : -2)
    if (tooth) context.lineTo(x, y)
    else context.moveTo(x, y)
  }
  context.stroke()
}
