/** What the engine is doing until it is ready: asked once a second, and afterwards only while a run waits for it. */
import { ask } from './source.js'

const EVERY = 1000

export class Engine {
  constructor(scene) {
    this.scene = scene
    this.health = null
  }

  get ready() {
    return this.health?.engine === 'ready'
  }

  /** Whether a run waits for the engine itself and not for other runs. */
  get away() {
    return Boolean(this.health) && !this.ready
  }

  async watch() {
    const { options, lang, actions } = this.scene
    clearTimeout(this.timer)
    try {
      this.health = await ask(options.base, 'health', lang)
    } catch {
      this.health = null
    }
    if (this.closed) return
    actions.draw()
    this.scene.compose.drawReady()
    const waits = this.scene.trace.last.phase === 'queued'
    if (waits) this.scene.redraw()
    if (waits || (!this.ready && this.health?.engine !== 'failed')) this.timer = setTimeout(() => this.watch(), EVERY)
  }

  close() {
    this.closed = true
    clearTimeout(this.timer)
  }
}
