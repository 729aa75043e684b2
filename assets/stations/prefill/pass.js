/** One pass, layer by layer in measured time: all tokens at once. The chart of its layers follows it. */
import { el, fill, setText } from '../../scene/dom.js'
import { duration } from '../../scene/text.js'
import { Chart } from '../shared/chart.js'

export class Pass {
  /** `common`: {words, scene, base, lang, run}. */
  constructor({ words, scene, base, lang, run }, started) {
    Object.assign(this, { words, run, tokens: started.prompt.length, layers: started.facts.layers, read: 0, seconds: 0, reached: 0 })
    this.told = el('p', { 'data-pass': true, 'aria-live': 'off' })
    this.chart = new Chart({ name: 'layers', base, lang, words: words.chart, scene })
    this.root = el('div', {}, this.told, this.chart.root, el('p', { class: 'caption' }, words.pass.caption))
  }

  take(event) {
    if (event.type === 'layer') {
      this.reached = event.index + 1
    } else {
      this.read = event.stop
      this.seconds += event.seconds
    }
  }

  draw() {
    const { words, tokens, layers, read, seconds, reached } = this
    const values = { n: tokens, layers, time: duration(seconds).join(' '), rate: Math.round(read / Math.max(seconds, 1e-9)), layer: reached }
    setText(this.told, fill(read ? words.pass.done : words.pass.going, values))
    Object.assign(this.told.dataset, { tokens, read, seconds })
    if (reached) this.chart.show({ run: this.run })
  }

  close() {
    this.chart.close()
  }
}
