/** What the engine is doing until it is ready: asked once a second, and not any more afterwards. */
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
    if (!this.ready && this.health?.engine !== 'failed') this.timer = setTimeout(() => this.watch(), EVERY)
  }

  close() {
    this.closed = true
    clearTimeout(this.timer)
  }
}
