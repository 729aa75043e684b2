// @ts-check
/**
 * Where things are on the scratch paper. A column is one position; when thousands do not fit, one column is several
 * positions (`bin`, likewise `wordBin` for the answer's), and the sheet says so.
 */
const LEAST = 0.31 // least width of a column, in units; on a phone a quarter less

/**
 * @import {Trace} from '../trace/trace.js'
 *
 * @typedef {object} Sheet
 * @property {number} width pixels
 * @property {number} height pixels
 * @property {number} u the scene's unit in pixels
 * @property {boolean} small
 * @property {number} prompt positions of the paper
 * @property {number} answers positions of the answer
 * @property {number} layers
 * @typedef {ReturnType<typeof geometry>} Geometry
 */

/** @param {Sheet} sheet */
export function geometry({ width, height, u, small, prompt, answers, layers }) {
  const left = (small ? 2 : 2.7) * u
  const right = (small ? 1.1 : 1.5) * u
  const top = (small ? 2.3 : 2.6) * u
  const bottom = (small ? 3.4 : 3.3) * u
  const gap = prompt && answers ? (small ? 0.6 : 0.8) * u : 0
  const room = width - left - right - gap
  const { bin, wordBin } = bins(prompt, answers, Math.max(8, Math.floor(room / (LEAST * (small ? 0.72 : 1) * u))))
  const readColumns = Math.ceil(prompt / bin)
  const columns = Math.max(1, readColumns + Math.ceil(answers / wordBin))
  const pitch = Math.min(room / columns, 2.2 * u)
  const row = (height - top - bottom) / Math.max(1, layers)
  /** @param {number} column */
  const x = (column) => left + column * pitch + (column >= readColumns ? gap : 0)
  /** @param {number} position */
  const columnOf = (position) =>
    position < prompt ? Math.floor(position / bin) : readColumns + Math.floor((position - prompt) / wordBin)
  return {
    width,
    height,
    u,
    small,
    layers,
    left,
    top,
    gap,
    bin,
    wordBin,
    readColumns,
    columns,
    pitch,
    row,
    x,
    columnOf,
    prompt,
    answers,
    y: (/** @type {number} */ layer) => top + layer * row,
    bottom: top + layers * row,
    readEnd: left + readColumns * pitch,
    end: x(columns - 1) + pitch,
    /** Positions [start, stop) that a column stands for. @type {(column: number) => [number, number]} */
    span: (column) =>
      column < readColumns
        ? [column * bin, Math.min(prompt, (column + 1) * bin)]
        : [prompt + (column - readColumns) * wordBin, prompt + (column - readColumns + 1) * wordBin],
    /** The place of a position count on the sheet, for the ruler: linear inside a column. @type {(positions: number) => number} */
    edge: (positions) =>
      positions <= prompt
        ? left + (positions / bin) * pitch
        : left + readColumns * pitch + gap + ((positions - prompt) / wordBin) * pitch,
  }
}

/** How many positions share a column so that all fit; the answer gets a quarter of the sheet when it needs it. @param {number} prompt @param {number} answers @param {number} most */
function bins(prompt, answers, most) {
  if (prompt + answers <= most) return { bin: 1, wordBin: 1 }
  const wordColumns = Math.min(answers, Math.max(Math.floor(most / 4), most - prompt))
  const wordBin = Math.max(1, Math.ceil(answers / Math.max(1, wordColumns)))
  const bin = Math.max(1, Math.ceil(prompt / (most - Math.ceil(answers / wordBin))))
  return { bin, wordBin }
}

/** Columns kept free for the answer while its length is not known: doubled when they are full. @param {Trace} trace */
export function answerRoom(trace) {
  const written = Math.max(0, trace.words.length - 1)
  if (trace.finished) return written
  const most = trace.started ? trace.started.settings.max_new_tokens : 0
  let room = 12
  while (room < written) room *= 2
  return Math.min(Math.max(1, most - 1), room)
}
