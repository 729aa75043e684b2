// @ts-check
/** Hands on a clock: the player's buttons and speeds, the keys, a line to scrub on. */
import { SPEEDS } from './player.js'

/** @import {Player} from './player.js' */

/** @type {Record<string, string>} */
const KEYS = { ' ': 'toggle', ArrowLeft: 'back', ArrowRight: 'forward', Home: 'home', End: 'end' }
const OWN_KEYS = 'input, select, textarea, [contenteditable], [role=slider]:not(.time), [role=tab]'

export class Hands {
  /** `root` holds what frame.js `buildPlayer` made, and keys count while it is on show; `player()` is its clock. @param {HTMLElement} root @param {() => Player} player */
  constructor(root, player) {
    this.root = root
    this.player = player
    this.gone = new AbortController()
    const { signal } = this.gone
    root.addEventListener('click', (event) => this.click(event), { signal })
    document.addEventListener('keydown', (event) => this.key(event), { signal })
  }

  /** @param {Event} event */
  click({ target }) {
    if (!(target instanceof Element)) return
    const [done, speed] = ['do', 'speed'].map((name) => target.closest(`[data-${name}]`)?.getAttribute(`data-${name}`))
    if (done) this.act(done)
    if (speed) this.setSpeed(Number(speed))
  }

  /** @param {string} name */
  act(name) {
    const player = this.player()
    if (name === 'toggle') player.toggle()
    if (name === 'home') player.seek(0)
    if (name === 'back') player.step(-1)
    if (name === 'forward') player.step(1)
    if (name === 'end') player.seek(player.end)
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const [target] = event.composedPath()
    if (event.ctrlKey || event.metaKey || event.altKey || !this.root.offsetParent) return
    const element = target instanceof Element ? target : null
    if (element?.matches(OWN_KEYS)) return
    const name = KEYS[event.key]
    if (!name || (event.key === ' ' && element?.closest('button, a, summary'))) return
    event.preventDefault()
    this.act(name)
  }

  /** @param {number} speed */
  setSpeed(speed) {
    const player = this.player()
    player.speed = SPEEDS.includes(speed) ? speed : 1
    player.since = performance.now()
    player.draw()
  }

  close() {
    this.gone.abort()
  }
}

/**
 * A line of time that can be dragged along: `seek(x)` with the place in pixels from its left end.
 *
 * @param {HTMLElement} line
 * @param {(x: number) => void} seek
 * @param {AbortSignal} signal
 */
export function scrubbing(line, seek, signal) {
  /** @param {PointerEvent} event */
  const go = ({ clientX }) => seek(clientX - line.getBoundingClientRect().left)
  line.addEventListener(
    'pointerdown',
    (event) => {
      line.setPointerCapture(event.pointerId)
      go(event)
    },
    { signal },
  )
  line.addEventListener('pointermove', (event) => event.buttons && go(event), { signal })
}
