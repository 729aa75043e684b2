// @ts-check
/** Tokens as chips: id, bytes, characters; those that share a character are held together by a bracket. */
import { el, fill } from '../../scene/dom.js'
import { bytesOf } from '../../scene/trace/norms.js'
import { visible } from '../../scene/text.js'

/**
 * @import {Token} from '../../scene/trace/events.js'
 *
 * @typedef {{tokens: Token[], text: string, own_start: number, own_stop: number, flagged: number[]}} Pieces of a text
 * @typedef {{piece: string, flagged: string}} ChipWords
 * @typedef {ChipWords & Record<'shared' | 'covers' | Side, string>} CutWords
 * @typedef {'before' | 'own' | 'after'} Side of the person's own words
 */

export const DRAWN = 1200 // chips of one text; the rest is counted only

/** Every character visible, the space before a word too: here it belongs to the token. @param {string} text */
export const shown = (text) => (/^ [^ ]/.test(text) ? `·${visible(text.slice(1))}` : visible(text))

/** @param {ArrayLike<number>} bytes */
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).toUpperCase().padStart(2, '0')).join(' ')

/** All tokens' bytes in a row. @param {{bytes: string}[]} tokens */
export function joined(tokens) {
  const parts = tokens.map((token) => bytesOf(token.bytes))
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  parts.reduce((at, part) => (all.set(part, at), at + part.length), 0)
  return all
}

/** Runs of tokens whose spans overlap, as [first, end): they share a character. @param {{start: number, stop: number}[]} tokens */
export function bundles(tokens) {
  /** @type {[number, number][]} */
  const found = []
  let reach = -1
  tokens.forEach(({ start, stop }, index) => {
    if (index && start < reach) found[found.length - 1][1] = index + 1
    else found.push([index, index + 1])
    reach = Math.max(reach, stop)
  })
  return found
}

/** What the chips say, for whoever reads them as text: tests, and screen readers' tools. @param {Token[]} tokens */
export function asText(tokens) {
  /** @type {number[]} */
  const group = []
  bundles(tokens).forEach(([first, end], number) => group.fill(number, (group.length = end) && first, end))
  return JSON.stringify(tokens.map(({ id, bytes, start, stop, special }, index) =>
    ({ id, bytes: hex(bytesOf(bytes)), start, stop, special, group: group[index] })))
}

/** Whether the ids' bytes, read as UTF-8, are the text again: `{ids, bytes, characters, equal}`. @param {Pick<Pieces, 'tokens' | 'text'>} cut */
export function roundTrip({ tokens, text }) {
  const bytes = joined(tokens)
  let back = null
  try {
    back = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    // bytes that are no text: not equal
  }
  return { ids: tokens.length, bytes: bytes.length, characters: Array.from(text).length, equal: back === text }
}

/** @param {ChipWords} words @param {Token} token @param {number} index */
export function chip(words, token, index, flagged = false) {
  const bytes = bytesOf(token.bytes)
  const part = /⟨[0-9A-F]{2}⟩/.test(token.text)
  const range = token.stop - token.start > 1 ? `${token.start + 1}–${token.stop}` : `${token.start + 1}`
  return el('span', {
    class: ['piece', token.special && 'special', flagged && 'flagged', part && 'part'].filter(Boolean).join(' '),
    'data-index': index,
    title: fill(words.piece, { id: token.id, bytes: hex(bytes), characters: range }) + (flagged ? `\n${words.flagged}` : ''),
  }, el('b', { dir: 'auto' }, shown(token.text)), el('i', {}, String(token.id)), el('small', {}, hex(bytes.subarray(0, 6)) + (bytes.length > 6 ? ' …' : '')))
}

/** Chips of `cut` (what `POST /api/tokenise` answers): what the template put before, the words, what it put after. @param {CutWords} words @param {Pieces} cut */
export function chips(words, cut) {
  const { tokens, own_start, own_stop } = cut
  const flagged = new Set(cut.flagged)
  const characters = Array.from(cut.text)
  /** @param {[number, number]} bundle */
  const bracket = ([first, end]) => {
    const made = tokens.slice(first, end).map((token, i) => chip(words, token, first + i, flagged.has(first + i)))
    const start = tokens[first].start
    const stop = Math.max(...tokens.slice(first, end).map((token) => token.stop))
    const label = end - first > 1
      ? fill(words.shared, { n: end - first, characters: characters.slice(start, stop).join('') })
      : stop - start > 1 ? fill(words.covers, { n: stop - start }) : ''
    return el('span', { class: `bundle${end - first > 1 ? ' several' : ''}` }, el('span', {}, ...made), el('em', { dir: 'auto' }, label))
  }
  /** @type {Record<Side, HTMLElement[]>} */
  const parts = { before: [], own: [], after: [] }
  for (const span of bundles(tokens.slice(0, DRAWN))) {
    parts[span[0] < own_start || own_stop === 0 ? 'before' : span[0] < own_stop ? 'own' : 'after'].push(bracket(span))
  }
  const sides = /** @type {Side[]} */ (Object.keys(parts)).filter((side) => parts[side].length)
  return sides.map((side) => el('div', { class: `pieces ${side}` }, side === 'own' ? '' : el('h3', {}, words[side]), ...parts[side]))
}
