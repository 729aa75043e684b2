// @ts-check
/** Theme, unit and fonts of the scene, independent of the page it sits in. */

export const CSS = new URL('scene.css', import.meta.url).href
const FONTS = new URL('fonts/', import.meta.url)

/** @typedef {'light' | 'dark'} Theme */

/** light or dark: as asked, else from the page's own background (Streamlit's variable), else as the system says. @param {Element} element @param {Theme} [asked] @returns {Theme} */
export function themeOf(element, asked) {
  if (asked) return asked
  const background = getComputedStyle(element).getPropertyValue('--st-background-color').trim()
  if (background) {
    const probe = document.createElement('canvas').getContext('2d')
    if (!probe) return 'light'
    probe.fillStyle = background
    probe.fillRect(0, 0, 1, 1)
    const [red, green, blue] = probe.getImageData(0, 0, 1, 1).data
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 128 ? 'dark' : 'light'
  }
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'
}

/** The poster is 80 units wide and 41.75 high; one unit is what makes both fit, 13 px at least. */
export const WIDE = 80
export const HIGH = 41.75
export const PHONE = 760

/** @param {number} width @param {number} height */
export function unitOf(width, height) {
  if (width <= PHONE) return 16
  return Math.min(52, Math.max(13, Math.min(width / WIDE, height / HIGH)))
}

/** A scene that is one of two side by side is 44 units wide. @param {number} width */
export const partUnitOf = (width) => Math.min(30, Math.max(13, width / 44))

/** When each stylesheet has come, or has not. @type {WeakMap<Element, Promise<unknown>>} */
const loaded = new WeakMap()

/** Loads the stylesheet into the document or shadow root that holds the element. @param {Element} element @returns {Promise<unknown>} */
export function loadStyles(element) {
  const root = element.getRootNode()
  const home = root instanceof ShadowRoot ? root : document.head
  const present = home.querySelector('link[data-exam-scene], style[data-exam-scene]')
  if (present) return loaded.get(present) ?? Promise.resolve()
  const link = document.createElement('link')
  link.rel = 'stylesheet'
  link.href = CSS
  link.dataset.examScene = ''
  const coming = new Promise((resolve) => {
    link.onload = resolve
    link.onerror = resolve
  })
  loaded.set(link, coming)
  home.append(link)
  return coming
}

/** @type {Promise<void> | null} */
let declared = null

/** Declares the shipped fonts once; each file is fetched when a character of it is first needed. @param {string} lang */
export function loadFonts(lang) {
  declared ??= fetch(new URL('faces.json', FONTS))
    .then((reply) => reply.json())
    .then((/** @type {{family: string, file: string, weight: string, style: string, range: string}[]} */ faces) => {
      for (const { family, file, weight, style, range } of faces) {
        const url = new URL(file, FONTS).href
        document.fonts.add(
          new FontFace(family, `url(${url})`, { weight, style, unicodeRange: range, display: 'block' }),
        )
      }
    })
    .catch(() => {})
  const sample = lang === 'zh' ? 'Ag开卷考试' : 'Ag'
  const needed = [
    '400 16px "Exam Sans"',
    '700 16px "Exam Sans"',
    '400 16px "Exam Serif"',
    '700 16px "Exam Serif"',
    'italic 400 16px "Exam Serif"',
    'italic 700 16px "Exam Serif"',
    '400 16px "Exam Mono"',
  ]
  return declared.then(() => Promise.allSettled(needed.map((font) => document.fonts.load(font, sample))))
}

const NAMES = [
  'ink',
  'pencil',
  'faint',
  'ghost',
  'edge',
  'rule',
  'rule-strong',
  'prefill',
  'decode',
  'mark',
  'mark-ink',
  'graphite',
  'paper',
  'pad',
  'desk',
  'prefill-wash',
  'decode-wash',
  'stop',
  'special',
]

/** The colours by name, for what is drawn on canvas. @param {Element} root @returns {Record<string, string>} */
export function paletteOf(root) {
  const style = getComputedStyle(root)
  return Object.fromEntries(
    NAMES.map((name) => [
      name.replace(/-(\w)/g, (_, /** @type {string} */ c) => c.toUpperCase()),
      style.getPropertyValue(`--${name}`).trim(),
    ]),
  )
}
