/** What can be chosen on this station: the part of the paper on show, K or V, layer and head, and another paper. */
import { button, el } from '../../scene/dom.js'

/** Zoom and pan over the positions. `view(work)` does the work and draws. */
export function zoomTools(words, columns, choice, view) {
  const tool = (name, sign, work) =>
    button(sign, () => view(work), { title: words.overview[name], 'aria-label': words.overview[name], 'data-do': name })
  const half = () => columns.seen.cells / 2
  return el('div', { class: 'tools', hidden: true },
    tool('back', '‹', () => columns.move(-half())), tool('nearer', '+', () => columns.zoom(0.5, choice.position)),
    tool('farther', '−', () => columns.zoom(2)), tool('fit', '⤢', () => columns.fit()), tool('ahead', '›', () => columns.move(half())))
}

/** K or V, layer, KV head, scale: `{nodes, show(choice)}`; `choose(change)` hears what was chosen. */
export function choosers(words, { layers, kv_heads }, choice, choose) {
  const count = (n) => Array.from({ length: n }, (_, index) => el('option', { value: index }, String(index + 1)))
  const select = (name, options) => el('select', { 'data-choose': name, onchange: ({ target }) => choose({ [name]: Number(target.value) }) }, ...options)
  const kind = (name) =>
    el('label', {},
      el('input', { type: 'radio', name: 'kind', value: name, 'data-choose': name, checked: choice.kind === name, onchange: () => choose({ kind: name }) }),
      el('span', {}, words.picture[name]))
  const [layer, head] = [select('layer', count(layers)), select('head', count(kv_heads))]
  const own = el('input', { type: 'checkbox', 'data-choose': 'own', checked: choice.own, onchange: ({ target }) => choose({ own: target.checked }) })
  return {
    nodes: [
      el('fieldset', { class: 'switch' }, el('legend', { class: 'unseen' }, words.picture.kind), kind('key'), kind('value')),
      el('label', {}, words.picture.layer, layer), el('label', {}, words.picture.head, head), el('label', {}, own, words.picture.own),
    ],
    show(choice) {
      layer.value = choice.layer
      head.value = choice.head
    },
  }
}

const PAPERS = ['closed-book', 'open-book', 'long-paper'] // short, middle, long

/** Papers of other lengths for the model of this run, to be sat at once: `sit(settings)`. */
export function papers(words, examples, { settings: { mode }, facts: { model } }, sit) {
  const all = examples.flatMap((one) => [one, ...one.variants])
  return PAPERS.map((id) => all.find((one) => one.id === id)).filter(Boolean).map(({ id, title, settings }) =>
    button(title, () => sit({ ...settings, model, mode }), { class: 'pill', 'data-paper': id, title: words.try.start }))
}
