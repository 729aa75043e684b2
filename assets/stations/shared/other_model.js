/**
 * The sentence that stands where figures of one model are shown beside a run of another: [data-other-model].
 *
 * `words` are a station's (`other_model` of stations.json). Whoever shows figures calls `show(run, figures)` with the two
 * models' names; it says nothing while one of them is not known, or where both are the same.
 */
import { el, fill, setText } from '../../scene/dom.js'

export class OtherModel {
  constructor(words) {
    this.words = words
    this.root = el('p', { class: 'other-model', 'data-other-model': '', role: 'note', hidden: true })
  }

  show(run, figures) {
    const other = Boolean(run && figures && run !== figures)
    this.root.hidden = !other
    this.root.dataset.otherModel = other ? figures : ''
    setText(this.root, other ? fill(this.words.other_model, { run, figures }) : '')
  }
}
