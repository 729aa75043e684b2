/** What this station asks of the service about a run's KV cache (docs/api.md). */
import { ask } from '../../scene/source.js'
import { RunApi } from '../shared/api.js'

const DIGITS = 16 // hex digits of one column's checksum

export class NotesApi extends RunApi {
  /** One KV head's K or V: `values` int8 position by position, `scales` per dimension; a value is int8 / 127 × scale. */
  async notes({ layer, head, kind }) {
    const { data, header } = await this.bytes(`/notes?${new URLSearchParams({ layer, head, kind })}`)
    const size = +header('X-Size')
    const scales = new Float32Array(data.buffer.slice(0, 4 * size))
    return { values: new Int8Array(data.buffer, 4 * size), scales, size, positions: +header('X-Positions'), first: +header('X-First'), source: header('X-Source') }
  }

  /** The bytes of the real tensors. */
  taken() {
    return this.json('/notes/bytes')
  }

  /** Take all columns' checksums now, and after every step from now on. */
  watch() {
    return ask(this.base, `${this.path}/columns`, this.lang, {})
  }

  /** The checks from number `from` on, `sums` cut into one string a column. */
  async checks(from) {
    const { checks } = await this.json(`/columns?${new URLSearchParams({ from })}`)
    return checks.map((check) => ({ ...check, sums: check.sums.match(new RegExp(`.{${DIGITS}}`, 'g')) ?? [] }))
  }
}
