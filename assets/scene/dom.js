/** Elements and sentences. Text from a person or a model only ever becomes a text node. */

export function el(name, attributes = {}, ...children) {
  return fillIn(document.createElement(name), attributes, children)
}

export function svg(name, attributes = {}, ...children) {
  return fillIn(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children)
}

function fillIn(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value)
    else if (value === true) element.setAttribute(name, '')
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value)
  }
  element.append(...children)
  return element
}

/** Sets text only when it differs: an untouched element costs no layout. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text
}

export function setFlag(element, name, on) {
  if (on) element.setAttribute(name, '')
  else element.removeAttribute(name)
}

/** `template` with its {gaps} filled, as plain text. */
export function fill(template, values = {}) {
  return template.replace(/\{(\w+)\}/g, (gap, name) => (name in values ? String(values[name]) : gap))
}

/** The same as nodes: what fills a gap is set in bold and kept apart from the sentence's direction. */
export function rich(template, values = {}) {
  return template
    .split(/(\{\w+\})/)
    .filter(Boolean)
    .map((piece) => {
      const name = piece.match(/^\{(\w+)\}$/)?.[1]
      return name in values ? el('b', { class: 'gap', dir: 'auto' }, String(values[name])) : piece
    })
}

export function setRich(element, template, values) {
  const key = template + JSON.stringify(values)
  if (element.shown === key) return
  element.shown = key
  element.replaceChildren(...rich(template, values))
}

export function button(label, onclick, attributes = {}) {
  return el('button', { type: 'button', onclick, ...attributes }, label)
}

/** Where a number comes from: measured · computed · recorded · simulated. */
export function tag(words, kind, mini = false) {
  return el(
    'span',
    { class: `tag ${kind}${mini ? ' mini' : ''}`, title: words.provenance[`${kind}_why`] },
    words.provenance[kind],
  )
}
