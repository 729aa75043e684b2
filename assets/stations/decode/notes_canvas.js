/** The scratch paper while one token passes: a row per layer, a column per position, and the time each layer took. */

const [TIMES, GAP, FOOT] = [0.2, 8, 18] // share of the width for the times; pixels between; pixels for the words below
const LEAST = 3 // pixels of a mark

/**
 * Draws the pass as it stands after `done` layers (a fraction: the last one is under way).
 *
 *   pass     {layers, positions, prompt, seconds: per layer, reads: {data, columns} or null, hideSink}
 *   look     {pad, rule, ghost, mark, decode, edge, pencil, ink, font, labels: {paper, answer, time}}
 */
export function drawNotes(canvas, pass, done, look) {
  const [width, height] = [canvas.clientWidth, canvas.clientHeight]
  const ratio = Math.min(2, devicePixelRatio || 1)
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio)
    canvas.height = Math.round(height * ratio)
  }
  const pen = canvas.getContext('2d')
  pen.setTransform(ratio, 0, 0, ratio, 0, 0)
  pen.clearRect(0, 0, width, height)
  const left = Math.floor(width * (1 - TIMES)) - GAP
  const row = (height - FOOT) / pass.layers
  paper(pen, pass, done, look, left, row)
  times(pen, pass, done, look, left + GAP, width - left - GAP, row)
  labels(pen, pass, look, left, width, height)
}

/** The x of every column's edge: one step each where they fit, else several positions share a pixel. */
const edge = (position, positions, left) => Math.round((position * left) / positions)

function paper(pen, pass, done, look, left, row) {
  const { layers, positions, reads, hideSink } = pass
  pen.fillStyle = look.pad
  pen.fillRect(0, 0, left, row * layers)
  const own = Math.max(edge(positions, positions, left) - edge(positions - 1, positions, left), 3)
  const weights = new Float32Array(left)
  for (let layer = 0; layer < layers; layer++) {
    const top = Math.round(layer * row)
    const high = Math.max(1, Math.round((layer + 1) * row) - top - (row > 5 ? 1 : 0))
    pen.fillStyle = look.ghost
    pen.globalAlpha = layer < done ? 0.16 : 0.5
    const cell = left / positions
    if (cell >= 4) for (let at = 0; at < positions - 1; at++) pen.fillRect(edge(at, positions, left), top, edge(at + 1, positions, left) - edge(at, positions, left) - 1, high)
    else pen.fillRect(0, top, left - own, high)
    pen.globalAlpha = 1
    if (layer >= done) continue
    if (reads) highlight(pen, pass, layer, weights, look, left, top, high, hideSink)
    pen.fillStyle = look.decode
    pen.globalAlpha = layer < Math.floor(done) ? 1 : 0.6
    pen.fillRect(left - own, top, own, high)
    pen.globalAlpha = 1
  }
  pen.fillStyle = look.edge
  pen.fillRect(edge(pass.prompt, positions, left) - 1, 0, 1, row * layers)
}

/** Each pixel shows the largest weight of the positions it stands for; a mark is wide enough to be seen. */
function highlight(pen, { reads, positions }, layer, weights, look, left, top, high, hideSink) {
  weights.fill(0)
  const base = layer * reads.columns
  for (let at = hideSink ? 1 : 0; at < reads.columns; at++) {
    const value = reads.data[base + at] / 255
    if (!value) continue
    const [from, to] = [edge(at, positions, left), Math.max(edge(at, positions, left) + LEAST, edge(at + 1, positions, left))]
    for (let x = from; x < to && x < left; x++) weights[x] = Math.max(weights[x], value)
  }
  pen.fillStyle = look.mark
  for (let x = 0; x < left; ) {
    let end = x + 1
    while (end < left && weights[end] === weights[x]) end++
    if (weights[x]) {
      pen.globalAlpha = Math.sqrt(weights[x]) // weak looks are most of them, and would not be seen
      pen.fillRect(x, top, end - x, high)
    }
    x = end
  }
  pen.globalAlpha = 1
}

function times(pen, { layers, seconds }, done, look, from, wide, row) {
  const most = Math.max(1e-9, ...seconds)
  for (let layer = 0; layer < layers; layer++) {
    const top = Math.round(layer * row)
    const high = Math.max(1, Math.round((layer + 1) * row) - top - (row > 5 ? 1 : 0))
    const share = Math.min(1, Math.max(0, done - layer))
    pen.fillStyle = look.rule
    pen.fillRect(from, top, (wide * seconds[layer]) / most, high)
    pen.fillStyle = look.decode
    pen.fillRect(from, top, (wide * seconds[layer] * share) / most, high)
  }
}

function labels(pen, { positions, prompt }, look, left, width, height) {
  pen.fillStyle = look.pencil
  pen.font = look.font
  pen.textBaseline = 'bottom'
  const split = edge(prompt, positions, left)
  pen.textAlign = 'left'
  pen.fillText(look.labels.paper, 0, height)
  pen.textAlign = 'right'
  if (left - split > 70 || split > 170) pen.fillText(look.labels.answer, left, height)
  pen.textAlign = 'left'
  pen.fillText(look.labels.time, left + GAP, height)
}
