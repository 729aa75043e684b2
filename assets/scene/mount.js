/**
 * The exam room as one element: `mount(element, options)` → {update(options), destroy()}.
 *
 *   words, errors  assets/words/<lang>/scene.json and errors.json as objects;  lang  'en' or 'zh'
 *   run            the run on the desk, or null (then the form is open);  moment  {at, layer, head} from a link
 *   examples       as views/lessons.py tells them: [{id, title, hint, settings, recording?, variants}]
 *   limits         {characters, new_tokens};  onRun(id)  called when a run is started or a recording opened
 *   onMoment({run, at, layer, head})  called when the clock is stopped somewhere or the lens is changed
 *   stations       addresses of the stations' pages by name;  onPage({name, query})  called when one is chosen
 *   base           prefix of the service's addresses;  theme  'light', 'dark' or left out (then it is found out)
 *   height         height in pixels, when it is not the window's;  source  see source.js, for pages without a service
 *
 * The root element has data-ready="true" once its first frame is drawn; [data-moment] holds that moment as text.
 */
import { Scene } from './scene.js'

export function mount(element, options) {
  const plain = {
    words: {},
    errors: {},
    lang: 'en',
    run: null,
    moment: {},
    examples: [],
    limits: {},
    base: '',
    onRun: () => {},
    onMoment: () => {},
    onPage: () => {},
  }
  let scene = new Scene(element, { ...plain, ...options })
  return {
    update(changes) {
      const rebuilt =
        (changes.lang && changes.lang !== scene.lang) || (changes.source && changes.source !== scene.options.source)
      if (!rebuilt) return scene.update(changes)
      const next = {
        ...scene.options,
        run: scene.run,
        moment: { at: scene.trace.finished ? scene.player.t : undefined },
        ...changes,
      }
      scene.close()
      scene = new Scene(element, next)
    },
    destroy() {
      scene.close()
    },
  }
}
