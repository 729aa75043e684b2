/** The slim bar: name, pages, language, light or dark. Text goes in as text; every click takes the address along. */

const element = (name, properties = {}, ...children) => {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value
    else made.setAttribute(key, value)
  }
  made.append(...children)
  return made
}

const query = () => Object.fromEntries(new URLSearchParams(location.search))

const address = (path, changes = {}) => `${path}?${new URLSearchParams({ ...query(), ...changes })}`.replace(/\?$/, '')

/** A real link (it can be opened in a new tab), whose plain click stays in this session. */
function link(path, changes, properties, go, ...children) {
  const anchor = element('a', { href: address(path, changes), ...properties }, ...children)
  const refresh = () => { anchor.href = address(path, changes) }
  anchor.addEventListener('pointerdown', refresh)
  anchor.addEventListener('focus', refresh)
  anchor.addEventListener('click', (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    go({ ...query(), ...changes })
  })
  return anchor
}

const current = (is) => (is ? { 'aria-current': 'page' } : {})
/** The menu in which the current page stands is marked, too. */
const here = (members) => (members.some((page) => page.current) ? { 'aria-current': 'true' } : {})

function navigation({ pages, words }, setTriggerValue) {
  const to = (page) =>
    link(page.path, {}, current(page.current), (query) => setTriggerValue('page', { name: page.name, query }), page.title)
  const groups = Map.groupBy(pages, (page) => page.group)
  const nav = element('nav', { ariaLabel: words.pages })
  for (const [group, members] of groups) {
    if (!group) nav.append(...members.map(to))
    else nav.append(element('details', { name: 'pages' }, element('summary', here(members), group), element('div', {}, ...members.map(to))))
  }
  return nav
}

const languages = ({ lang, words }, setTriggerValue) =>
  element('div', { className: 'pill', role: 'group', ariaLabel: words.language },
    ...['en', 'zh'].map((code) =>
      link(location.pathname, { lang: code }, { lang: code, hreflang: code, ...current(code === lang) },
        (query) => setTriggerValue('lang', query), words[`lang_${code}`])))

/* Light or dark is Streamlit's to keep: its own switch is in the menu that frame.css hides, and is pressed there.
   Streamlit remembers the choice per address; the other pages are to be in the same light. */
const isDark = (host) => {
  const [red, green, blue] = getComputedStyle(host).backgroundColor.match(/\d+/g).map(Number)
  return red + green + blue < 384
}

function setTheme(name, pages) {
  const pressed = () => {
    const item = document.querySelector(`[data-testid="stMainMenuItem-theme-${name}"]`)
    if (!item) return false
    item.click()
    document.querySelector('[data-testid="stMainMenuButton"], [data-testid="stMainMenu"] button')?.click()
    const kept = Object.keys(localStorage).find((key) => key.startsWith(`stActiveTheme-${location.pathname}-`))
    const suffix = kept?.slice(`stActiveTheme-${location.pathname}`.length)
    if (kept) for (const { path } of pages) localStorage.setItem(`stActiveTheme-${path}${suffix}`, localStorage[kept])
    return true
  }
  document.querySelector('[data-testid="stMainMenuButton"], [data-testid="stMainMenu"] button')?.click()
  let frames = 0
  const wait = () => pressed() || (++frames < 60 && requestAnimationFrame(wait))
  requestAnimationFrame(wait)
}

const SUN = 'M12 7a5 5 0 1 0 0 10 5 5 0 0 0 0-10zm-1-6h2v4h-2zm0 18h2v4h-2zM1 11h4v2H1zm18 0h4v2h-4zM3.5 4.9l1.4-1.4 2.9 2.8-1.5 1.5zm12.7 12.8 1.5-1.5 2.8 2.9-1.4 1.4zM19.1 3.5l1.4 1.4-2.8 2.9-1.5-1.5zM6.3 16.2l1.5 1.5-2.9 2.8-1.4-1.4z'
const MOON = 'M12 2a10 10 0 1 0 10 10.6A7.5 7.5 0 0 1 12.2 2z'

function theme(bar, { pages, words }) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg')
  svg.setAttribute('viewBox', '0 0 24 24')
  const path = svg.appendChild(document.createElementNS(svg.namespaceURI, 'path'))
  const button = element('button', { type: 'button' }, svg)
  bar.refresh = () => {
    const dark = isDark(bar)
    button.title = button.ariaLabel = dark ? words.to_light : words.to_dark
    path.setAttribute('d', dark ? SUN : MOON)
    button.onclick = () => setTheme(dark ? 'Light' : 'Dark', pages)
  }
  return element('div', { className: 'pill' }, button)
}

export default function ({ parentElement, data, setTriggerValue }) {
  const { pages, words } = data
  import(new URL('/scene/theme.js', location.origin)).then(({ loadFonts }) => loadFonts(data.lang)).catch(console.error)
  document.documentElement.lang = data.lang === 'zh' ? 'zh-CN' : 'en'
  parentElement.querySelector('.bar')?.remove()
  const bar = element('header', { className: 'bar' })
  const home = pages[0]
  bar.append(
    link(home.path, {}, { className: 'brand' }, (query) => setTriggerValue('page', { name: home.name, query }), words.title),
    element('span', { className: 'motto' }, words.motto),
  )
  if (pages.length > 1) bar.append(navigation(data, setTriggerValue))
  bar.append(element('div', { className: 'switches' }, languages(data, setTriggerValue), theme(bar, data)))
  parentElement.append(bar)
  bar.refresh()
}
