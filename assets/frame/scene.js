/** Keeps one scene per place on the page: mounts it once, then hands it each new state of its data. */

const scenes = new WeakMap()

/** The moment stands in the address, so that a link and the next page show the same one. */
function remember({ run, at, layer, head }) {
  const query = new URLSearchParams(location.search)
  for (const [key, value] of Object.entries({ run, at, layer, head })) {
    if (value === null || value === undefined) query.delete(key)
    else query.set(key, value)
  }
  history.replaceState(history.state, '', `${location.pathname}?${query}`)
}

async function mount(parent, options) {
  const element = parent.appendChild(document.createElement('div'))
  try {
    const scene = await import(new URL('/scene/mount.js', location.origin))
    return scene.mount(element, options)
  } catch (error) {
    console.error(error)
    element.textContent = options.missing
    return { update() {}, destroy() {} }
  }
}

export default function ({ parentElement, data, setTriggerValue }) {
  const options = { ...data, onRun: (run) => setTriggerValue('run', run), onMoment: remember }
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
