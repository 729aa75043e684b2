/**
 * Ways from the desk to the stations, with the run and the moment: over the rail's words, and on the scratch paper's
 * title. Real links (a new tab shows the same moment); a plain click changes the page through `options.onPage`.
 */
import { el } from './dom.js'

const RAIL = ['tokenise', 'prefill', 'decode', 'detokenise']

export class Links {
  constructor(scene) {
    this.scene = scene
    const { parts, words, options } = scene
    const { stations = {} } = options
    this.rail = RAIL.filter((name) => stations[name]).map((name) => [name, this.link(name, words.rail[name])])
    parts.ways.append(...this.rail.map(([, link]) => link))
    if (stations.notes) {
      const title = parts.scratchTitle.firstChild
      title.replaceWith(this.link('notes', title.textContent))
    }
  }

  link(name, text) {
    const { stations } = this.scene.options
    const link = el('a', { href: stations[name], 'data-station': name }, text)
    const refresh = () => link.setAttribute('href', `${stations[name]}?${new URLSearchParams(this.query())}`)
    link.addEventListener('pointerdown', refresh)
    link.addEventListener('focus', refresh)
    link.addEventListener('click', (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
      event.preventDefault()
      this.scene.options.onPage({ name, query: this.query() })
    })
    return link
  }

  /** The address's query, at the moment on the desk. */
  query() {
    const query = { ...Object.fromEntries(new URLSearchParams(location.search)), lang: this.scene.lang }
    for (const name of ['run', 'at', 'layer', 'head']) delete query[name]
    return Object.fromEntries(new URLSearchParams({ ...query, ...this.scene.place() })) // as an address says it
  }

  /** Over the drawing: `xs`, `y` in its units, of which 16 are one of ours. */
  resize({ xs, y }) {
    const { u } = this.scene
    for (const [name, link] of this.rail) {
      link.style.left = `${(xs[RAIL.indexOf(name)] * u) / 16}px`
      link.style.top = `${(y * u) / 16}px`
    }
  }
}
