// @ts-check
/** A moment on which the clock stands still is told to the page, once and after a while, so that the address can keep it. */
const PATIENCE = 400 // milliseconds

export class Still {
  constructor() {
    this.told = ''
    this.timer = 0
  }

  /**
   * `moment`: what the page may keep, or null while the clock moves.
   *
   * @template {object} M
   * @param {M | null} moment
   * @param {(moment: M) => void} onMoment
   */
  tell(moment, onMoment) {
    const key = moment ? JSON.stringify(moment) : ''
    if (key === this.told) return
    this.told = key
    clearTimeout(this.timer)
    if (moment) this.timer = setTimeout(() => onMoment(moment), PATIENCE)
  }

  close() {
    clearTimeout(this.timer)
  }
}
