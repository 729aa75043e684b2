// @ts-check
/** Elements and sentences. Text from a person or a model only ever becomes a text node. */

/**
 * @typedef {{hear(event: Event): unknown}['hear']} Listener of any kind of event
 * @typedef {string | number | boolean | null | undefined | Listener} Attribute `on…` takes a function; true is an attribute
 *   without a value, and false, null and undefined none
 * @typedef {Record<string, string | number | boolean | null | undefined>} Values of a sentence's gaps
 * @typedef {'measured' | 'computed' | 'recorded' | 'simulated'} Provenance
 */

/**
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Record<string, Attribute>} attributes
 * @param {(Node | string)[]} children
 */
export function el(name, attributes = {}, ...children) {
  return fillIn(document.createElement(name), attributes, children)
}

/**
 * @template {keyof SVGElementTagNameMap} Name
 * @param {Name} name
 * @param {Record<string, Attribute>} attributes
 * @param {(Node | string)[]} children
 */
export function svg(name, attributes = {}, ...children) {
  return fillIn(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children)
}

/**
 * @template {Element} E
 * @param {E} element
 * @param {Record<string, Attribute>} attributes
 * @param {(Node | string)[]} children
 */
function fillIn(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name.slice(2), value)
    else if (value === true) element.setAttribute(name, '')
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value))
  }
  element.append(...children)
  return element
}

/** Sets text only when it differs: an untouched element costs no layout. @param {Element} element @param {string} text */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text
}

/** @param {Element} element @param {string} name @param {unknown} on */
export function setFlag(element, name, on) {
  if (on) element.setAttribute(name, '')
  else element.removeAttribute(name)
}

/** `template` with its {gaps} filled, as plain text. @param {string} template @param {Values} values */
export function fill(template, values = {}) {
  return template.replace(/\{(\w+)\}/g, (gap, name) => (name in values ? String(values[name]) : gap))
}

/** The same as nodes: what fills a gap is set in bold and kept apart from the sentence's direction. @param {string} template @param {Values} values */
export function rich(template, values = {}) {
  return template
    .split(/(\{\w+\})/)
    .filter(Boolean)
    .map((piece) => {
      const name = piece.match(/^\{(\w+)\}$/)?.[1]
      return name && name in values ? el('b', { class: 'gap', dir: 'auto' }, String(values[name])) : piece
    })
}

/** What each element was filled with last. @type {WeakMap<Element, string>} */
const shown = new WeakMap()

/** @param {Element} element @param {string} template @param {Values} [values] */
export function setRich(element, template, values) {
  const key = template + JSON.stringify(values)
  if (shown.get(element) === key) return
  shown.set(element, key)
  element.replaceChildren(...rich(template, values))
}

/** @param {string} label @param {(event: MouseEvent) => unknown} onclick @param {Record<string, Attribute>} attributes */
export function button(label, onclick, attributes = {}) {
  return el('button', { type: 'button', onclick, ...attributes }, label)
}

/** Where a number comes from: measured · computed · recorded · simulated. @param {{provenance: Record<Provenance | `${Provenance}_why`, string>}} words @param {Provenance} kind */
export function tag(words, kind, mini = false) {
  return el(
    'span',
    { class: `tag ${kind}${mini ? ' mini' : ''}`, title: words.provenance[`${kind}_why`] },
    words.provenance[kind],
  )
}
