/**
 * Keeps one scene (or whatever `data.module` mounts in the same way) per place on the page: mounts it once, then hands
 * it each new state of its data.
 */

const scenes = new WeakMap()

/** The moment stands in the address, so that a link and the next page show the same one. */
const remember = ({ run, at, layer, head, beside }) => address({ run, at, layer, head, ...(beside ? { beside } : {}) })

/** What is chosen on a page stands there, too; what is null or undefined is taken out. */
function address(values) {
  const query = new URLSearchParams(location.search)
  for (const [key, value] of Object.entries(values)) {
    if (value === null || value === undefined) query.delete(key)
    else query.set(key, value)
  }
  history.replaceState(history.state, '', `${location.pathname}?${query}`)
}

const from = (path) => import(new URL(path, location.origin))

/** Streamlit also calls when the reader changes between light and dark: the scene is told which it is now. */
async function mount(parent, options) {
  const element = parent.appendChild(document.createElement('div'))
  try {
    const [{ mount }, { themeOf }] = await Promise.all([from(options.module ?? '/scene/mount.js'), from('/scene/theme.js')])
    const lit = (options) => ({ ...options, theme: themeOf(element) })
    const scene = mount(element, lit(options))
    return { update: (options) => scene.update(lit(options)), destroy: () => scene.destroy() }
  } catch (error) {
    console.error(error)
    element.textContent = options.missing
    return { update() {}, destroy() {} }
  }
}

export default function ({ parentElement, data, setTriggerValue }) {
  const options = {
    ...data,
    onRun: (run) => setTriggerValue('run', run),
    onPair: (pair) => setTriggerValue('pair', pair),
    onPage: (page) => setTriggerValue('page', page),
    onMoment: remember,
    onChosen: address,
  }
  const scene = scenes.get(parentElement) ?? { turn: 0, handle: mount(parentElement, options) }
  scenes.set(parentElement, scene)
  const turn = (scene.turn += 1)
  if (turn > 1) scene.handle = scene.handle.then((handle) => (handle.update(options), handle))
  // Streamlit also cleans up a call that a later one has overtaken; only the last may take the scene away.
  return () => {
    if (scene.turn !== turn) return
    scenes.delete(parentElement)
    scene.handle.then((handle) => handle.destroy())
  }
}
