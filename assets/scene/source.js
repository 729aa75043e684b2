// @ts-check
/**
 * Where events come from. The scene needs an object with
 *
 *   events(from, onEvents, onEnd, onState)   calls onEvents([event, …]) for events number `from` and on, onEnd() when
 *                                            there are no more, onState('live' | 'lost' | 'refused'); gives a function
 *                                            that stops it
 *   attention({layer, head, row})            a promise of {weights: [0…1, row + 1 of them], provenance}
 *   summary()                                a promise of the run's summary (docs/api.md)
 *
 * This one speaks to the service; an offline page passes its own.
 */
/**
 * @import {TraceEvent} from './trace/events.js'
 *
 * @typedef {{code: string, values: Record<string, string | number>, message: string}} Refusal what the service says no with
 * @typedef {'live' | 'lost' | 'refused'} Connection
 * @typedef {{weights: Float32Array, provenance: string}} Attention
 *
 * @typedef {object} Source
 * @property {(from: number, onEvents: (events: TraceEvent[]) => void, onEnd: () => void, onState?: (state: Connection) => void) => () => void} events
 * @property {(look: {layer: number, head: number | null, row: number}) => Promise<Attention>} attention
 * @property {() => Promise<unknown>} summary
 */

const UNKNOWN = 4404
const FORBIDDEN = 4403

/** @implements {Source} */
export class ServiceSource {
  /** @param {string} base @param {string} run */
  constructor(base, run) {
    this.api = `${base}/api/runs/${encodeURIComponent(run)}`
  }

  /** @type {Source['events']} */
  events(from, onEvents, onEnd, onState = () => {}) {
    let next = from
    /** @type {WebSocket} */
    let socket
    let timer = 0
    let pause = 250
    let over = false
    const connect = () => {
      socket = new WebSocket(`${new URL(this.api, location.href).href.replace(/^http/, 'ws')}/events?from=${next}`)
      socket.onmessage = ({ data }) => {
        pause = 250
        onState('live')
        const lines = /** @type {string} */ (data).split('\n').filter(Boolean)
        /** @type {TraceEvent[]} */
        const events = lines.map((line) => JSON.parse(line))
        next += events.length
        over ||= events.some((event) => event.type === 'finished')
        onEvents(events)
      }
      socket.onclose = ({ code }) => {
        if (over || code === 1000) return onEnd()
        if (code === UNKNOWN || code === FORBIDDEN) return onState('refused')
        onState('lost')
        timer = setTimeout(connect, pause)
        pause = Math.min(5000, pause * 2)
      }
    }
    connect()
    return () => {
      clearTimeout(timer)
      socket.onclose = null
      socket.onmessage = null
      socket.close()
    }
  }

  /** @type {Source['attention']} */
  async attention({ layer, head, row }) {
    const query = new URLSearchParams({ layer: String(layer), row: String(row) })
    if (head !== null) query.set('head', String(head))
    const reply = await fetch(`${this.api}/attention?${query}`)
    if (!reply.ok) throw new Error(`attention ${reply.status}`)
    const view = new DataView(await reply.arrayBuffer())
    const weights = Float32Array.from({ length: view.byteLength / 2 }, (_, i) => view.getUint16(2 * i, true) / 65535)
    return { weights, provenance: reply.headers.get('X-Source') ?? 'computed' }
  }

  async summary() {
    const reply = await fetch(this.api)
    return reply.ok ? reply.json() : null
  }
}

/**
 * A request to the service: the reply's JSON, of the shape that docs/api.md tells. Throws a `Refusal` when it says no.
 *
 * @template T
 * @param {string} base
 * @param {string} path
 * @param {string} lang
 * @param {object} [body]
 * @returns {Promise<T>}
 */
export async function ask(base, path, lang, body) {
  let reply
  try {
    reply = await fetch(`${base}/api/${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'Accept-Language': lang, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  } catch {
    throw { code: 'unreachable', values: {}, message: '' }
  }
  const text = await reply.text()
  const json = text.startsWith('{') ? JSON.parse(text) : null
  if (!reply.ok) throw json?.error ?? { code: 'unreachable', values: {}, message: '' }
  return json
}
