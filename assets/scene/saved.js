/** Whether a run that is over is saved with its looks: asked soon after its end, and again while the engine is busy. */
const EVERY = 1000

export class Saved {
  constructor(scene) {
    this.scene = scene
  }

  /** `over`: it was over when it was opened, so what its summary said then is no older than the page. */
  watch(trace, over) {
    clearTimeout(this.timer)
    const { kind, part, summary } = this.scene
    if (kind === 'recorded' || part || (over && summary?.looks !== 'saving')) return
    this.timer = setTimeout(() => this.ask(trace), EVERY)
  }

  async ask(trace) {
    const summary = await this.scene.source.summary().catch(() => null)
    if (this.closed || trace !== this.scene.trace) return
    if (summary) this.scene.summary = summary
    this.scene.redraw()
    if (!summary || summary.looks === 'saving') this.timer = setTimeout(() => this.ask(trace), EVERY)
  }

  /** What there is to say: nothing of a run that is saved whole, or can still be looked at. */
  get said() {
    const { words, trace, summary } = this.scene
    if (!trace.finished) return ''
    if (summary?.looks === 'saving') return words.player.saving
    return summary?.looks === 'not_saved' && !summary.kept ? words.player.not_saved : ''
  }

  close() {
    this.closed = true
    clearTimeout(this.timer)
  }
}
