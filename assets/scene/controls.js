/** What a person does to the player, the lens and the sheets. */
import { el, fill } from './dom.js'
import { number, visible } from './text.js'
import { Hands, scrubbing } from './play/hands.js'

export class Controls {
  constructor(scene) {
    this.scene = scene
    this.gone = new AbortController()
    this.bind()
  }

  on(target, kinds, listener, options = {}) {
    for (const kind of kinds.split(' '))
      target.addEventListener(kind, listener, { signal: this.gone.signal, ...options })
  }

  bind() {
    const { parts } = this.scene
    if (!this.scene.part) this.hands = new Hands(parts.root, () => this.scene.player)
    const seek = (x) => this.scene.player.seek(this.scene.timeline.timeAt(x))
    scrubbing(parts.time, seek, this.gone.signal)
    this.on(parts.link, 'click', () => this.copyLink())
    this.bindLens()
    this.bindHover()
  }

  async copyLink() {
    const { scene } = this
    const link = new URL('/', location.href)
    link.search = new URLSearchParams({ ...scene.place(), lang: scene.lang })
    scene.parts.link.dataset.link = link.href
    await navigator.clipboard?.writeText(link.href).catch(() => {})
    this.tip(scene.words.player.copied, scene.parts.link.getBoundingClientRect())
    setTimeout(() => this.hideTip(), 1500)
  }

  bindLens() {
    const { parts } = this.scene
    const choose = (choice) => {
      this.scene.lens.choose(choice)
      this.scene.redraw()
    }
    this.on(parts.lensLayer, 'change', () => choose({ layer: Number(parts.lensLayer.value) }))
    this.on(parts.lensHead, 'change', () =>
      choose({ head: parts.lensHead.value === 'mean' ? null : Number(parts.lensHead.value) }),
    )
    this.on(parts.sink, 'change', () => choose({ sink: !parts.sink.checked }))
  }

  /** Fills the two choices for this model. */
  fillLens() {
    const { parts, words, trace, lens } = this.scene
    const { layers, heads } = trace.facts
    const options = (count, template, chosen) =>
      Array.from({ length: count }, (_, i) =>
        el('option', { value: i, selected: i === chosen }, fill(template, { n: i + 1 })),
      )
    parts.lensLayer.replaceChildren(...options(layers, words.lens.layer_n, lens.choice.layer))
    parts.lensHead.replaceChildren(
      el('option', { value: 'mean', selected: lens.choice.head === null }, fill(words.lens.mean_of, { n: heads })),
      ...options(heads, words.lens.head_n, lens.choice.head),
    )
    parts.sink.checked = !lens.choice.sink
  }

  bindHover() {
    const { parts, view } = this.scene
    const word = ({ target }) => {
      const index = target.closest?.('[data-word]')?.dataset.word
      this.see({ word: index === undefined ? -1 : Number(index) })
    }
    this.on(parts.lines, 'pointerover focusin', word)
    this.on(parts.lines, 'pointerleave focusout', () => this.see({ word: -1 }))
    this.on(parts.paper, 'pointerover', (event) => this.hoverChip(event))
    this.on(parts.paper, 'pointerleave', () => {
      this.see({ column: -1 })
      this.hideTip()
    })
    this.on(parts.grid, 'pointermove', (event) => this.hoverGrid(event))
    this.on(parts.grid, 'pointerleave', () => {
      this.see({ column: -1 })
      this.hideTip()
    })
    this.on(parts.root, 'pointerover focusin click', ({ target }) => {
      const tipped = target.closest?.('[data-tip]')
      if (tipped) this.tip(tipped.dataset.tip, tipped.getBoundingClientRect())
      else if (this.tipped && !target.closest?.('.grid, .paper')) this.hideTip()
      this.tipped = Boolean(tipped)
    })
    this.on(parts.root, 'focusout', () => this.hideTip())
    Object.assign(view, { word: -1, column: -1 })
  }

  see(change) {
    const { view } = this.scene
    if (Object.entries(change).every(([name, value]) => view[name] === value)) return
    Object.assign(view, change)
    this.scene.redraw()
  }

  hoverChip({ target }) {
    const { trace, words } = this.scene
    const chip = target.closest?.('[data-column]')
    if (!chip) {
      this.see({ column: -1 })
      return this.hideTip()
    }
    const position = Number(chip.dataset.column)
    const token = trace.started.prompt[position]
    this.see({ column: position })
    const hex = Array.from(atob(token.bytes.replaceAll('-', '+').replaceAll('_', '/')), (c) =>
      c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0'),
    ).join(' ')
    const lines = [
      `“${visible(token.text)}”`,
      fill(words.paper.token, { id: token.id, position: position + 1 }),
      fill(words.paper.bytes, { bytes: hex }),
    ]
    if (chip.classList.contains('flagged')) lines.push(words.paper.flagged)
    if (chip.classList.contains('torn')) lines.push(words.scratch.hover_torn)
    this.tip(lines.join('\n'), chip.getBoundingClientRect())
  }

  hoverGrid({ clientX, clientY }) {
    const { parts, scratch, trace, words, player } = this.scene
    const { g } = scratch
    const box = parts.grid.getBoundingClientRect()
    const [x, y] = [clientX - box.left, clientY - box.top]
    const layer = g?.layers ? Math.floor((y - g.top) / g.row) : -1
    let column = -1
    for (let c = 0; g && c < g.columns; c++) if (x >= g.x(c) && x < g.x(c) + g.pitch) column = c
    const state = trace.stateAt(player.t)
    const [start, stop] = column >= 0 && layer >= 0 && layer < g.layers ? g.span(column) : [0, 0]
    const has = stop > start && (start < state.columns || (start < state.chunk_stop && layer < state.layers))
    if (!has) {
      this.see({ column: -1 })
      return this.hideTip()
    }
    this.see({ column: start })
    const last = Math.min(stop, Math.max(state.columns, state.chunk_stop))
    const many = last - start > 1
    const text = many
      ? fill(words.scratch.hover_many, { start: number(start + 1), stop: number(last), layer: layer + 1 })
      : fill(words.scratch.hover, { word: this.scene.columnText(start), layer: layer + 1 })
    const v = many ? '' : number(trace.values.norm(layer, start), 2)
    const norms = many ? '' : `\n${fill(words.scratch.hover_norms, { k: number(trace.keys.norm(layer, start), 2), v })}`
    const torn = !many && trace.gone.get(start) <= player.t ? `\n${words.scratch.hover_torn}` : ''
    this.tip(`${text}${torn}${norms}\n${words.scratch.hover_legend}`, { left: clientX, bottom: clientY + 6, top: clientY - 6 })
  }

  tip(text, { left, bottom, top }) {
    const { tip, root } = this.scene.parts
    tip.hidden = false
    if (tip.textContent !== text) tip.textContent = text
    const home = root.getBoundingClientRect()
    const x = Math.max(4, Math.min(left - home.left, home.width - tip.offsetWidth - 8))
    const below = bottom - home.top + 8
    const y = below + tip.offsetHeight > home.height ? top - home.top - tip.offsetHeight - 8 : below
    tip.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`
  }

  hideTip() {
    this.scene.parts.tip.hidden = true
  }

  close() {
    this.hands?.close()
    this.gone.abort()
  }
}
