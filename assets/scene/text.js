// @ts-check
/** How text and numbers look: nothing invisible stays invisible. */

/** @type {Record<string, string>} */
const NAMED = { '\n': '↵', '\t': '⇥', '\u00a0': '⍽', '\u007f': '␡' }
// Controls, zero-width characters, direction marks, unassigned surrogates: shown by their number.
const UNSEEN = /[\u0080-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\p{Cs}/u

/** One character as it is shown in a chip. U+200D inside an emoji is left alone: it is what joins it. @param {string} character @param {boolean} joined */
function glyph(character, joined) {
  if (character in NAMED) return NAMED[character]
  const code = character.codePointAt(0) ?? 0
  if (code < 0x20) return String.fromCodePoint(0x2400 + code)
  if (UNSEEN.test(character) && !(code === 0x200d && joined))
    return `⟨${code.toString(16).toUpperCase().padStart(4, '0')}⟩`
  return character
}

/** Scripts written without spaces: a line may be broken between any two of their characters. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u

/** Whether a token begins a new word for a reader: after a gap or a line, or in a script without gaps. @param {string} text */
export function beginsWord(text, before = '') {
  return /^[^\S\n]/.test(text) || /\s$/.test(before) || UNSPACED.test(Array.from(text)[0] ?? '')
}

/** A token's text with every character visible; a single leading space is the gap between words and left out. @param {string} text */
export function visible(text) {
  const core = /^ [^ ]/.test(text) ? text.slice(1) : text
  const dotted = core.replace(/ {2,}|^ +$|^ | $/g, (spaces) => '·'.repeat(spaces.length))
  const characters = Array.from(dotted)
  const shown = characters.map((character) => glyph(character, characters.length > 1)).join('')
  return /^\p{M}/u.test(shown) ? `◌${shown}` : shown
}

/** @type {Map<string, Intl.NumberFormat>} */
const formats = new Map()

/** @param {string} lang @param {number} digits after the point */
function format(lang, digits) {
  const key = `${lang}${digits}`
  let made = formats.get(key)
  if (!made) {
    made = new Intl.NumberFormat(lang === 'zh' ? 'zh-CN' : 'en-US', {
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
    })
    formats.set(key, made)
  }
  return made
}

/** @param {number} value */
export const number = (value, digits = 0) => format('en', digits).format(value)

/** @param {number} share of 1 */
export const percent = (share) => (share < 0.0095 ? '<1%' : `${Math.round(share * 100)}%`)

/**
 * Seconds as a person reads them: [number, unit name]. Under a second in milliseconds.
 *
 * @param {number} seconds
 * @returns {[string, 'ms' | 's']}
 */
export function duration(seconds) {
  if (seconds < 1) return [number(seconds * 1000, 1), 'ms']
  return [number(seconds, seconds < 100 ? 2 : 1), 's']
}

/** Bytes in decimal units, as the ruler counts them. @param {number} count */
export function bytes(count) {
  if (count < 100) return `${number(count)} B`
  const [unit, size] = count >= 1e9 ? ['GB', 1e9] : count >= 1e6 ? ['MB', 1e6] : ['KB', 1e3]
  return `${number(count / size, count / size < 10 ? 2 : 1)} ${unit}`
}
