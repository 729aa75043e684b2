// @ts-check
/**
 * One clock for several scenes: each run's own seconds since its start was pressed, counted together. A scene that is
 * given `clock: pair` takes a seat here instead of making a `Player` (scene.js); the pair is the player of them all.
 */
import { Player } from './player.js'

/** @import {Trace} from '../trace/trace.js' */

export class Pair extends Player {
  /** @param {(t: number) => void} onFrame */
  constructor(onFrame, calm = false) {
    /** @type {Set<Seat>} */
    const seats = new Set()
    const traces = () => [...seats].map((seat) => seat.trace)
    const all = {
      get end() {
        return Math.max(0, ...traces().map((trace) => trace.end))
      },
      get finished() {
        return seats.size > 0 && traces().every((trace) => trace.finished)
      },
    }
    /** @param {number} t */
    const draw = (t) => {
      for (const seat of seats) seat.onFrame(seat.t)
      onFrame(t)
    }
    super(all, draw, calm)
    this.seats = seats
  }

  /** What a scene has in place of a player of its own. @param {Trace} trace @param {(t: number) => void} onFrame */
  seat(trace, onFrame) {
    const seat = new Seat(this, trace, onFrame)
    this.seats.add(seat)
    this.room = 0
    return seat
  }

  /** While following, now is the newest event of those that still go on. */
  present() {
    const going = [...this.seats].filter((seat) => !seat.trace.finished)
    const heard = (going.length ? going : [...this.seats]).map((seat) => seat.trace.end)
    if (this.following) this.t = Math.max(0, ...heard)
    this.draw()
  }

  /** @param {boolean} [everyLayer] */
  stops(everyLayer) {
    const times = [...this.seats].flatMap((seat) => seat.stops(everyLayer))
    return [...new Set(times)].sort((a, b) => a - b)
  }
}

/** One scene's view of the pair: it stands still at its own end while another goes on. */
class Seat extends Player {
  /** @param {Pair} pair @param {Trace} trace @param {(t: number) => void} onFrame */
  constructor(pair, trace, onFrame) {
    super(trace, onFrame)
    this.pair = pair
  }

  get t() {
    return Math.min(this.pair.t, this.trace.end)
  }
  set t(_) {}
  get following() {
    return this.pair.following && !this.trace.finished
  }
  set following(_) {}
  get playing() {
    return this.pair.playing
  }
  set playing(_) {}
  get axis() {
    return this.pair.axis
  }

  draw() {
    this.pair.draw()
  }
  present() {
    this.pair.present()
  }
  follow() {
    this.pair.follow()
  }
  /** @param {number} t */
  seek(t) {
    this.pair.seek(t)
  }
  chooseSpeed() {
    this.pair.chooseSpeed()
  }

  /** A run that is over is there: from the beginning, once all are. */
  play() {
    if (!this.pair.trace.finished) return
    this.pair.t = 0
    this.pair.play()
  }

  /** A run that was followed is over: its end, and that of all when it was the last. */
  arrive() {
    if (this.pair.following && this.pair.trace.finished) this.pair.seek(this.pair.end)
  }

  close() {
    this.pair.seats.delete(this)
  }
}
