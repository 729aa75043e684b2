/** One pass, layer by layer in measured time: all tokens at once. */
import { el, fill, setText } from '../../scene/dom.js'
import { duration } from '../../scene/text.js'

const time = (seconds) => duration(seconds).join(' ')

export class Pass {
  constructor({ words, started, recorded }) {
    this.words = words
    this.tokens = started.prompt.length
    this.layers = Array.from({ length: started.facts.layers }, () => 0)
    this.read = 0
    this.seconds = 0
    this.bars = this.layers.map((_, layer) => el('i', { 'data-pass-layer': layer }))
    this.told = el('p', { 'data-pass': true, 'aria-live': 'off' })
    this.root = el('div', {}, this.told, el('div', { class: 'bars', 'aria-hidden': 'true' }, ...this.bars), el('p', { class: 'caption' }, `${recorded ? words.pass.recorded : words.pass.measured} ${words.pass.caption}`))
    this.draw()
  }

  take(event) {
    if (event.type === 'layer') {
      this.layers[event.index] += event.seconds
      this.reached = event.index + 1
    } else {
      this.read = event.stop
      this.seconds += event.seconds
    }
    this.draw()
  }

  draw() {
    const { words, tokens, layers, read, seconds } = this
    const most = Math.max(1e-9, ...layers)
    this.bars.forEach((bar, layer) => {
      bar.style.height = `${(100 * layers[layer]) / most}%`
      bar.dataset.seconds = layers[layer]
      bar.title = fill(words.pass.layer, { layer: layer + 1, time: time(layers[layer]) })
    })
    const values = { n: tokens, layers: layers.length, time: time(seconds), rate: Math.round(read / Math.max(seconds, 1e-9)), layer: this.reached ?? 0 }
    setText(this.told, fill(read ? words.pass.done : words.pass.going, values))
    Object.assign(this.told.dataset, { tokens, read, seconds })
  }
}
