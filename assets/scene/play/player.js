// @ts-check
/**
 * The clock. Following: the present is the newest event. Replaying: `t` seconds of the model's own time, at a speed.
 * It asks for a frame only while something moves; `onFrame(t)` draws.
 */
import { stops } from '../trace/moment.js'

export const SPEEDS = [1, 0.1, 0.05, 0.02, 0.01]
/**
 * Milliseconds between two frames while following. The browser often sits on the model's own cores, and what it draws
 * there the model waits for: on two cores each frame without a graphics card costs it some six milliseconds.
 */
const PAUSE = navigator.hardwareConcurrency <= 2 ? 80 : navigator.hardwareConcurrency <= 4 ? 40 : 16

/**
 * @import {Trace} from '../trace/trace.js'
 *
 * @typedef {{readonly end: number, readonly finished: unknown}} Lasting anything with an end, which may be still to come
 */

export class Player {
  #t = 0
  #playing = false
  #following = false

  /** @param {Lasting} trace a run, or what a player of its own kind plays @param {(t: number) => void} onFrame @param {boolean} calm without motion */
  constructor(trace, onFrame, calm = false) {
    this.trace = trace
    this.onFrame = onFrame
    this.calm = calm
    this.since = 0
    this.speed = 0.02
    this.frame = 0
    this.drawn = 0
    this.later = 0
    this.timer = 0
    this.room = 0
  }

  // Where the clock stands and whether it goes: read and set here, but a seat at a pair has the pair's (pair.js).
  get t() {
    return this.#t
  }
  set t(t) {
    this.#t = t
  }
  get playing() {
    return this.#playing
  }
  set playing(playing) {
    this.#playing = playing
  }
  get following() {
    return this.#following
  }
  set following(following) {
    this.#following = following
  }

  get end() {
    return this.trace.end
  }

  /** Where the axis of time ends. While a run is live its end is not known: a little later than now, in steps. */
  get axis() {
    const { end } = this
    if (this.trace.finished) return end
    if (end > this.room * 0.97 || !this.room) this.room = Math.max(0.05, end * 1.5)
    return this.room
  }

  /** One listed speed for a whole run: the one that comes nearest to eleven seconds. */
  chooseSpeed() {
    /** @param {number} speed */
    const off = (speed) => Math.abs(Math.log(this.trace.end / speed / 11))
    this.speed = SPEEDS.reduce((best, speed) => (off(speed) < off(best) ? speed : best))
  }

  follow() {
    this.stop()
    this.following = true
    this.present()
  }

  /** New events came. */
  present() {
    if (this.following) this.t = this.trace.end
    this.draw()
  }

  /** Draws once however often it is asked: in the next frame, or while following at most every `PAUSE`. */
  draw() {
    if (this.frame) return
    const wait = this.following ? PAUSE - (performance.now() - this.drawn) : 0
    if (wait > 0) {
      this.later ||= setTimeout(() => this.request(), wait)
      return
    }
    this.request()
  }

  request() {
    clearTimeout(this.later)
    this.later = 0
    this.frame ||= requestAnimationFrame((now) => {
      this.frame = 0
      this.drawn = performance.now()
      if (this.playing && !this.calm) this.advance(now)
      this.onFrame(this.t)
    })
  }

  /** @param {number} now milliseconds */
  advance(now) {
    this.t = Math.min(this.trace.end, this.t + ((now - this.since) / 1000) * this.speed)
    this.since = now
    if (this.t < this.trace.end) this.draw()
    else if (this.trace.finished) this.stop()
    else this.follow()
  }

  play() {
    this.following = false
    if (this.t >= this.trace.end) this.t = 0
    this.playing = true
    this.since = performance.now()
    // Without motion it goes from word to word.
    if (this.calm) this.timer = setInterval(() => (this.t < this.trace.end ? this.step(1, true) : this.pause()), 1400)
    this.draw()
  }

  stop() {
    this.playing = false
    this.following = false
    clearInterval(this.timer)
  }

  pause() {
    this.stop()
    this.draw()
  }

  toggle() {
    if (this.playing || this.following) this.pause()
    else this.play()
  }

  /** @param {number} t seconds */
  seek(t) {
    this.stop()
    this.t = Math.min(this.trace.end, Math.max(0, t))
    this.draw()
  }

  /** A run that was followed is over. */
  arrive() {
    if (this.following) this.seek(this.end)
  }

  /** @param {boolean} [everyLayer] @returns {number[]} */
  stops(everyLayer) {
    return stops(/** @type {Trace} */ (this.trace), everyLayer)
  }

  /** @param {number} direction 1 or -1 */
  step(direction, playing = false) {
    const times = this.stops(!playing)
    const next =
      direction > 0 ? times.find((time) => time > this.t + 1e-7) : times.findLast((time) => time < this.t - 1e-7)
    if (!playing) this.stop()
    this.t = next ?? (direction > 0 ? this.trace.end : 0)
    this.draw()
  }

  close() {
    this.stop()
    clearTimeout(this.later)
    cancelAnimationFrame(this.frame)
  }
}
