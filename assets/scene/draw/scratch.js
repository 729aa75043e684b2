/**
 * The scratch paper, on three canvases: `back` (ruling, what is looked at), `notes` (marks that are dry: only new ones
 * are added), `front` (what is being written, the strip above, the ruler below).
 */
import { fill, setText, tag } from '../dom.js'
import { bytes, number } from '../text.js'
import { formulaOf } from './formula.js'
import { answerRoom, geometry } from './geometry.js'
import { mark } from './marks.js'
import { drawBack } from './back.js'
import { drawFront, FRESH } from './front.js'
import { drawTorn, runsOf, tears } from './torn.js'

export class Scratch {
  constructor(scene) {
    this.scene = scene
    this.key = ''
  }

  reset() {
    this.key = ''
  }

  /** Sizes the canvases and finds the geometry when anything it depends on has changed. */
  measure() {
    const { parts, trace, u, small, layout } = this.scene
    const answers = answerRoom(trace)
    const key = [layout, trace.prompt, answers, trace.layers].join()
    if (key === this.key) return
    this.key = key
    const { clientWidth: width, clientHeight: height } = parts.grid
    this.g = geometry({ width, height, u, small, prompt: trace.prompt, answers, layers: trace.layers })
    this.contexts = {}
    for (const name of ['back', 'notes', 'front']) {
      const canvas = parts[name]
      canvas.width = Math.round(width * devicePixelRatio)
      canvas.height = Math.round(height * devicePixelRatio)
      this.contexts[name] = canvas.getContext('2d')
      this.contexts[name].setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0)
      this.contexts[name].lineCap = 'round'
    }
    this.dry = null
    this.backKey = ''
  }

  draw(moment) {
    const { trace } = this.scene
    this.measure()
    const written = this.written(moment)
    if (trace.started) this.drawNotes(written)
    const back = backKeyOf(this.scene, moment)
    if (back !== this.backKey || !this.g.layers) {
      this.backKey = back
      this.clear('back')
      drawBack(this.contexts.back, this.g, this.scene, moment)
    }
    this.clear('front')
    drawFront(this.contexts.front, this.g, this.scene, moment, written)
    this.drawFormula(moment, written)
  }

  clear(name) {
    this.contexts[name].clearRect(0, 0, this.g.width, this.g.height)
  }

  /**
   * What is on the paper at this moment. `dry` counts rows of prefill passes laid end to end (pass 0 layer 0, pass 0
   * layer 1, …) and decode columns that will not change any more; `bytes` is what the notes take.
   */
  written({ t, pass, passIndex, rows, reading, step, steps, state }) {
    const { trace } = this.scene
    const { layers } = trace
    const before = Math.max(0, passIndex) * layers
    const wet = reading ? rows : layers
    const dryRows = pass ? before + (reading ? Math.max(0, Math.floor(rows - FRESH)) : layers) : 0
    const position = trace.started ? trace.noteBytes : 0
    let extra = 0
    if (reading) extra = Math.floor(rows) * (pass.stop - pass.start) * position
    else if (step >= 0) extra = Math.floor(rows) * position * (1 + (trace.steps[step].drafts?.length ?? 0))
    const sliding = trace.facts?.window > 0 && state.columns > trace.facts.window
    return {
      dryRows,
      wet,
      reading,
      steps,
      stepRows: step >= 0 ? rows : 0,
      step,
      bytes: state.kv_bytes + (sliding ? 0 : extra),
      measured: extra === 0,
      tears: tears(trace, t),
    }
  }

  drawNotes({ dryRows, steps, tears: torn }) {
    const dry = this.dry
    const back = !dry || dryRows < dry.rows || steps < dry.steps || torn < dry.torn
    if (back || dry.trace !== this.scene.trace || this.rescaled(dry)) {
      this.clear('notes')
      this.dry = { rows: 0, steps: 0, torn: 0, trace: this.scene.trace, passes: this.scene.trace.passes.length }
    }
    const fresh = dryRows > this.dry.rows || steps > this.dry.steps
    for (; this.dry.rows < dryRows; this.dry.rows++) this.drawRow(this.contexts.notes, this.dry.rows)
    for (; this.dry.steps < steps; this.dry.steps++) this.drawColumn(this.dry.steps)
    if (torn && (fresh || torn !== this.dry.torn))
      drawTorn(this.contexts.notes, this.g, this.scene.palette, runsOf(this.scene.trace, torn))
    this.dry.torn = torn
  }

  /** Another part of the paper was read: the layers' scales have changed, so all marks have. */
  rescaled(dry) {
    return dry.passes !== this.scene.trace.passes.length
  }

  /** One layer of one pass. A column that two parts of the paper share is drawn again with both. */
  drawRow(context, index, options = {}) {
    const { trace, palette } = this.scene
    const pass = trace.passes[Math.floor(index / trace.layers)]
    const layer = index % trace.layers
    const first = this.g.columnOf(pass.start)
    const last = this.g.columnOf(pass.stop - 1)
    if (this.g.span(first)[0] < pass.start)
      context.clearRect(this.g.x(first), this.g.y(layer), this.g.pitch, this.g.row)
    for (let column = first; column <= last; column++)
      mark(context, this.g, trace, layer, column, pass.stop, palette.graphite, options)
  }

  /** The note of one written word in all layers. */
  drawColumn(step) {
    const { trace, palette } = this.scene
    const { notes } = this.contexts
    const position = trace.prompt + step
    const column = this.g.columnOf(position)
    if (this.g.span(column)[0] < position)
      notes.clearRect(this.g.x(column), this.g.top, this.g.pitch, this.g.bottom - this.g.top)
    for (let layer = 0; layer < trace.layers; layer++)
      mark(notes, this.g, trace, layer, column, position + 1, palette.decode, { boost: 0.22 })
  }

  drawFormula(moment, { bytes: now, measured }) {
    const { state } = moment
    const { words, trace, parts, kind } = this.scene
    setText(parts.bytes, number(now))
    const provenance = measured && trace.started ? kind : 'computed'
    if (this.provenance !== provenance) parts.bytesTag.replaceChildren(tag(words, (this.provenance = provenance)))
    if (!trace.started) {
      setText(parts.formula, '')
      setText(parts.formulaEnd, '')
      return
    }
    setText(parts.formula, formulaOf(this.scene, moment, now))
    // The size of one note while notes are taken; afterwards what was set aside for the whole run.
    const end = state.kv_allocated
      ? fill(words.scratch.reserved, { n: bytes(state.kv_allocated) })
      : fill(words.scratch.mark, { n: number(trace.noteBytes) })
    setText(parts.formulaEnd, end)
  }
}

/** Everything the back canvas depends on; it is drawn again only when this changes. */
function backKeyOf({ lens, view, trace }, { focus, phase, passIndex, rows, reading, step, words }) {
  const word = view.word >= 0 && view.word < words ? view.word : focus
  const row = trace.prompt + word - 1
  const known = word >= 0 && lens.row(row) !== null
  return [
    word,
    known,
    lens.key(row),
    lens.choice.sink,
    phase,
    passIndex,
    reading ? Math.floor(rows) : '',
    step,
    view.column,
    trace.passes.length,
  ].join()
}
