/** The row of the player: what plays and how fast, which model ran where; and the moment, told to the page. */
import { fill, setFlag, setText } from '../dom.js'
import { Still } from '../play/still.js'

/** The button that plays or pauses, and the speed at work. */
export function drawPlayer({ go, speeds }, player, words) {
  const on = player.playing || player.following
  setFlag(go, 'data-on', on)
  go.setAttribute('aria-label', on ? words.player.pause : words.player.play)
  const speed = player.following ? 1 : player.speed
  for (const each of speeds.children) each.setAttribute('aria-pressed', Number(each.dataset.speed) === speed)
}

export class Transport {
  constructor(scene) {
    this.scene = scene
    this.still = new Still()
  }

  draw() {
    const { parts, player, words, trace, run } = this.scene
    drawPlayer(parts, player, words)
    parts.link.disabled = !run
    setFlag(parts.root, 'data-empty', !trace.events.length)
    setText(parts.run, trace.started ? this.provenance(trace.started) : '')
    this.tell()
  }

  provenance({ facts, settings }) {
    const { words, summary, kind } = this.scene
    const { sampled, greedy, run, run_recorded } = words.provenance
    return fill(kind === 'recorded' ? run_recorded : run, {
      model: this.scene.options.models?.[facts.model]?.title ?? facts.model,
      device: facts.device_name || facts.device,
      dtype: facts.dtype,
      date: summary?.created?.slice(0, 10) ?? '',
      choice: settings.temperature > 0 ? fill(sampled, settings) : greedy,
    })
  }

  /** A moment on which the clock stands still, and the lens it is looked at with: the page may keep it. */
  tell() {
    const { lens, run, trace, player, options } = this.scene
    const stands = run && trace.finished && !player.playing && !player.following
    const { layer, head } = lens.choice
    this.still.tell(stands ? { run, at: Math.ceil(player.t * 1e6) / 1e6, layer, head } : null, options.onMoment)
  }

  close() {
    this.still.close()
  }
}
