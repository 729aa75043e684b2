/** One sentence on what is happening, one line of detail, and the model's clock. */
import { el, fill, setRich, setText, tag } from '../dom.js'
import { bytes, duration, number, percent } from '../text.js'

export const time = (seconds) => duration(seconds).join(' ')

/** The sentence and its detail: {title, template, values, note}. A pure function of scene and moment. */
export function sentences(scene, moment) {
  const { words, trace } = scene
  const { state, phase } = moment
  const w = words.head
  const layers = trace.layers
  if (phase === 'idle') return { title: w.idle, template: w.idle_sub, note: null }
  if (phase === 'queued')
    return {
      title: scene.engine.away ? fill(w.queued_engine, { what: words.engine[scene.engine.health.engine] }) : w.queued,
      template: state.ahead ? w.queued_sub : w.queued_next,
      values: { n: state.ahead },
      note: null,
    }
  if (phase === 'tokenise')
    return { title: fill(w.tokenise, { n: number(trace.prompt) }), template: w.tokenise_sub, note: null }
  if (phase === 'prefill') return reading(w, trace, moment, layers)
  if (phase === 'first' && state.forgotten) return torn(w, trace, state)
  if (phase === 'first')
    return {
      title: w.first,
      template: w.first_sub,
      values: { time: time(trace.last.ttft ?? trace.last.at) },
      note: 'first',
    }
  if (phase === 'decode') return writing(scene, moment)
  return ended(scene, moment)
}

function reading(w, trace, { state, pass, passIndex, rows, reading }, layers) {
  if (pass && trace.rest) return resting(w, trace, { state, pass, rows, reading }, layers)
  const whole = pass && pass.start === 0 && pass.stop === trace.prompt
  if (pass && !reading)
    return {
      title: w.prefill_wait,
      template: w.prefill_wait_sub,
      values: { n: number(state.read), all: number(trace.prompt) },
      note: 'prefill',
    }
  const layer = Math.min(layers, Math.floor(rows) + 1)
  const n = number(pass ? pass.stop - pass.start : trace.prompt)
  if (!pass || whole)
    return { title: w.prefill, template: w.prefill_sub, values: { layer, layers, n }, note: 'prefill' }
  return {
    title: w.prefill_chunk,
    template: w.prefill_chunk_sub,
    values: { part: passIndex + 1, layer, layers, n },
    note: 'prefill',
  }
}

/** The beginning's notes are another run's: first they are taken over, then the rest is read. */
function resting(w, trace, { state, pass, rows, reading }, layers) {
  const values = { taken: number(trace.reused.stop), n: number(pass.stop - pass.start), all: number(trace.prompt), rest: number(trace.rest) }
  if (!reading) return { title: w.prefix, template: w.prefix_sub, values, note: 'prefill' }
  return { title: w.rest, template: w.rest_sub, values: { ...values, layer: Math.min(layers, Math.floor(rows) + 1), layers }, note: 'prefill' }
}

/** A step that reads guessed tokens with the newest one is a small prefill; only when it is over is it known what holds. */
function guessing(w, { drafts, accepted, read, judged }) {
  const values = { k: number(drafts.length), read: number(read), accepted: number(accepted) }
  if (!judged) return { title: w.guess, template: drafts.length > 1 ? w.guess_sub : w.guess_one_sub, values, note: 'decode' }
  const what = accepted === drafts.length ? 'all' : accepted ? 'some' : 'none'
  return { title: w[`guess_${what}`], template: w[`guess_${what}_sub`], values, note: 'decode' }
}

function writing(scene, { focus, state, step, steps, guess }) {
  const { words, trace, lens } = scene
  const w = words.head
  if (guess) return guessing(w, guess)
  if (trace.words[focus]?.taken) return { title: w.taken, template: w.taken_sub, values: { n: number(trace.reused.stop), k: trace.last.kept }, note: 'decode' }
  if (focus <= 0 && state.forgotten) return torn(w, trace, state)
  if (focus <= 0) return { title: w.first, template: w.first_sub, values: { time: time(state.ttft) }, note: 'first' }
  const word = trace.words[focus]
  const k = focus + 1
  if (trace.started.settings.notes === false) return { title: w.reread, template: w.reread_sub, values: { k, n: number(trace.prompt + focus) }, note: null }
  const row = trace.prompt + focus - 1
  const together = trace.steps[step >= 0 ? step : steps - 1]?.together ?? 1
  if (word.token.special && focus === trace.words.length - 1 && trace.finished?.reason === 'eos')
    return { title: w.decode, template: w.decode_end, values: { k, stop: w.stop }, note: 'decode', together }
  const best = lens.looks(row).find((look) => look.column !== row)
  if (best && best.weight >= 0.1)
    return {
      title: w.decode,
      template: w.decode_look,
      values: { k, word: scene.columnText(best.column) },
      note: 'decode',
      together,
    }
  const found = lens.row(row)
  if (found?.weights?.[0] > 0.5)
    return {
      title: w.decode,
      template: w.decode_rest,
      values: { k, share: percent(found.weights[0]) },
      note: 'decode',
      together,
    }
  return { title: w.decode, template: w.decode_sub, values: { k }, note: 'decode', together }
}

/** The paper is read and what is not to be kept goes: how much, and what stays. */
function torn(w, trace, state) {
  const { first, last, heavy } = trace.started.settings.keeping
  const template = heavy ? w.torn_heavy_sub : first ? w.torn_sub : w.torn_window_sub
  const values = { gone: number(state.forgotten), columns: number(state.columns), first: number(first), last: number(last), heavy: number(heavy) }
  return { title: w.torn, template, values, note: 'first' }
}

/** How a paper that came to its end was read and written: at once or in parts, word by word or with guesses. */
function whole(w, { passes }, { offered }) {
  if (offered) return w.end_guessed
  const parts = passes.filter(({ taken }) => !taken).length
  return parts > 1 ? fill(w.end_parts, { n: number(parts) }) : w.end
}

function ended({ words, trace, errors }, { state }) {
  const w = words.head
  const { finished } = trace
  const title = state.reason === 'eos' ? whole(w, trace, state) : w[state.reason]
  const sentence = finished.code && errors?.[finished.code]
  if (sentence)
    return { title, template: fill(sentence, Object.fromEntries(finished.values)), abnormal: true, note: null }
  if (!trace.started) return { title, template: w.end_waiting_sub, note: null }
  if (!state.chosen) return { title, template: w.end_early_sub, note: null }
  if (trace.rest && state.tpot !== null) {
    const values = { taken: number(trace.reused.stop), rest: number(trace.rest), read: time(trace.reading), tpot: time(state.tpot) }
    return { title, template: w.end_rest_sub, values, note: null }
  }
  if (trace.reused && state.tpot !== null)
    return { title, template: w.end_taken_sub, values: { n: number(trace.reused.stop), tpot: time(state.tpot) }, note: null }
  const read = time(trace.reading)
  if (state.offered && state.tpot !== null) {
    const values = { words: number(state.chosen), passes: number(state.passes), offered: number(state.offered), accepted: number(state.accepted), tpot: time(state.tpot) }
    return { title, template: w.end_guessed_sub, values, note: null }
  }
  if (state.tpot === null)
    return { title, template: w.end_one_sub, values: { n: number(state.prompt), read }, note: null }
  return { title, template: w.end_sub, values: { n: number(state.prompt), read, tpot: time(state.tpot) }, note: null }
}

/** What else is to be said of the moment: who shares the pass, what is not there any more. */
function further(w, { together, title, note }, { state }) {
  const torn = state.forgotten && title !== w.torn && (note === 'decode' || note === null)
  return (together > 1 ? ` ${w.decode_together}` : '') + (torn ? ` ${w.torn_so_far}` : '')
}

export class Headline {
  constructor(scene) {
    this.scene = scene
    this.shown = ''
  }

  draw(moment) {
    const { words, parts, trace, connection, kind, engine } = this.scene
    const said = sentences(this.scene, moment)
    this.said = said
    setText(parts.headline, said.title)
    const failed = engine?.health?.engine === 'failed' && engine.health.error?.message
    if (failed) setText(parts.sub, failed)
    else if (connection === 'lost' || connection === 'refused') setRich(parts.sub, words.head[connection], {})
    else
      setRich(parts.sub, said.template + further(words.head, said, moment), {
        ...said.values,
        ...(said.together > 1 ? { n: said.together - 1 } : {}),
        gone: number(moment.state.forgotten),
        columns: number(moment.state.columns),
      })
    parts.sub.classList.toggle('abnormal', Boolean(failed || said.abnormal) || connection === 'lost')
    if (parts.sub.title !== parts.sub.textContent) parts.sub.title = parts.sub.textContent
    this.note(said.note)
    const [value, unit] = duration(moment.t)
    if (this.shown !== value + unit) parts.clock.replaceChildren(value, ' ', el('i', {}, unit))
    this.shown = value + unit
    const total = trace.finished ? fill(words.head.clock, { total: time(trace.end) }) : words.head.clock_live
    const told = trace.events.length > 0 // before, nothing was measured that a mark could be about
    const key = `${total}${told ? kind : ''}${trace.started?.cold}`
    if (this.total !== key) {
      this.total = key
      parts.clockSub.replaceChildren(
        ...(trace.started?.cold && !this.scene.part ? [el('span', { class: 'cold' }, words.head.cold), ' · '] : []),
        total,
        ...(told ? [' ', tag(words, kind)] : []),
      )
    }
  }

  /** The mark where the analogy stops belongs to the sentence on show. */
  note(name) {
    const { words, parts, trace } = this.scene
    const key = name && name !== 'decode' ? name : 'headline'
    if (parts.headNote.dataset.note === key && parts.headNote.filled) return
    parts.headNote.filled = true
    parts.headNote.dataset.note = key
    parts.headNote.dataset.tip = words.notes[key]
    parts.headNote.setAttribute('aria-label', `${words.notes.sign}: ${words.notes[key]}`)
    const weights = trace.facts ? bytes(trace.facts.weight_bytes) : '…'
    parts.decodeNote.dataset.tip = fill(words.notes.decode, { weights })
    parts.decodeNote.setAttribute('aria-label', `${words.notes.sign}: ${parts.decodeNote.dataset.tip}`)
  }
}
