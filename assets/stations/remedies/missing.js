/**
 * Measures what is missing of all labs with one button, a piece at a time, in the order of the table.
 *
 * A piece that cannot be measured here is told and passed over; when somebody's run goes on, or nothing answers, it stops
 * with a sentence, and the button goes on from there. What is left is estimated from the pieces done since it was pressed.
 */
import { fill } from '../../scene/dom.js'
import { number } from '../../scene/text.js'
import { Measuring } from '../shared/measuring.js'

/** What stops it all: trying the next piece would fail the same way. Everything else is about one piece. */
const STOPS = ['others_at_work', 'measuring', 'engine_busy', 'engine_died', 'engine_failed', 'too_many_jobs', 'model_not_ready', 'model_absent', 'unknown_model', 'job_cancelled']

export class Missing extends Measuring {
  /** `title(lab)` is a lab's name for people; `onRefused(piece, message)` hears of each that cannot be measured, `onOver()` of the end. */
  constructor(options) {
    super(options)
    Object.assign(this, { title: options.title, onRefused: options.onRefused, onOver: options.onOver })
    this.refused = 0
  }

  async run() {
    this.begin = performance.now()
    this.refused = 0
    await super.run()
    this.onOver()
  }

  says(piece, done, of) {
    const { going, left, seconds, minutes } = this.words.all
    const told = fill(going, { n: done + 1, of, what: this.title(piece.lab) })
    if (!done) return told
    const rest = ((performance.now() - this.begin) / 1000 / done) * (of - done)
    const time = rest < 90 ? fill(seconds, { n: number(Math.max(1, Math.round(rest))) }) : fill(minutes, { n: number(Math.round(rest / 60)) })
    return `${told} ${fill(left, { time })}`
  }

  passOver(piece, problem) {
    if (!problem.code || STOPS.includes(problem.code)) return false
    this.refused += 1
    this.onRefused(piece, problem.message)
    return true
  }

  ended(state, done, of) {
    const { all, measuring } = this.words
    if (state === 'stopped') return this.state(state, fill(all.stopped, { n: done - this.refused, of }))
    return this.state(state, this.refused ? fill(all.passed, { n: done - this.refused, of, refused: this.refused }) : fill(measuring.finished, { of }))
  }

  failed(problem, done, of) {
    this.state('failed', `${problem.message || this.words.unreachable} ${fill(this.words.all.on, { n: done - this.refused, of })}`)
  }
}
