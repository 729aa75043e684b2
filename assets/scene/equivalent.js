/** The moment as text: attributes for machines (tests read them at every frame), a live region for people. */

/** The guesses on show, as data: which, whether they are judged, how many were right. */
const told = (guess) =>
  guess
    ? { guess: guess.judged ? 'judged' : 'read', query: guess.read, drafts: guess.drafts.map(({ id }) => id).join(' '), right: guess.judged ? guess.accepted : '' }
    : { guess: '', query: '', drafts: '', right: '' }

export class Equivalent {
  constructor(scene) {
    this.scene = scene
    this.said = ''
    this.timer = 0
  }

  draw({ t, state, guess }) {
    const { parts, trace, run } = this.scene
    const data = {
      phase: state.phase,
      columns: state.columns,
      chosen: state.chosen,
      kvBytes: state.kv_bytes,
      layers: state.layers,
      read: state.read,
      prompt: state.prompt,
      text: state.text,
      at: t,
      reason: state.reason,
      ttft: state.ttft ?? '',
      tpot: state.tpot ?? '',
      run: run ?? '',
      events: trace.events.length,
      held: state.held,
      ahead: state.ahead,
      decoded: state.decoded,
      forgotten: state.forgotten,
      passes: state.passes,
      offered: state.offered,
      accepted: state.accepted,
      ...told(guess),
    }
    for (const [name, value] of Object.entries(data)) {
      if (parts.moment.dataset[name] !== String(value)) parts.moment.dataset[name] = value
    }
    this.speak()
  }

  /** Whole sentences only, and not more than one in a second and a half. */
  speak() {
    const { parts } = this.scene
    const sentence = `${parts.headline.textContent} ${parts.sub.textContent}`
    if (sentence === this.said || this.timer) return
    this.timer = setTimeout(() => {
      this.timer = 0
      this.said = `${parts.headline.textContent} ${parts.sub.textContent}`
      parts.live.textContent = this.said
    }, 1500)
  }

  close() {
    clearTimeout(this.timer)
  }
}
