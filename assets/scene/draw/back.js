/** The sheet's ruling, the row or column being written, and what is looked at: everything that lies under the marks. */

export const shade = (weight) => (weight < 0.006 ? 0 : Math.min(1, (weight / 0.5) ** 0.75))

export function drawBack(context, g, scene, moment) {
  const { palette, view } = scene
  if (!g.layers) return drawEmpty(context, g, palette)
  drawRuling(context, g, palette)
  if (moment.reading) {
    const layer = Math.min(g.layers - 1, Math.floor(moment.rows))
    const [a, b] = [g.x(g.columnOf(moment.pass.start)), g.x(g.columnOf(moment.pass.stop - 1)) + g.pitch]
    context.fillStyle = palette.prefillWash
    context.fillRect(a - 1, g.y(layer) - g.row * 0.5, b - a + 2, g.row * 2)
  }
  drawLooks(context, g, scene, moment)
  if (moment.step >= 0) {
    const x = g.x(g.columnOf(g.prompt + moment.step))
    context.globalAlpha = 1
    context.fillStyle = palette.decodeWash
    context.fillRect(x - g.pitch * 0.25, g.top, g.pitch * 1.5, g.bottom - g.top)
  }
  if (view.column >= 0) {
    context.globalAlpha = 0.16
    context.fillStyle = palette.decode
    context.fillRect(g.x(g.columnOf(view.column)) - 1, g.top, g.pitch + 2, g.bottom - g.top)
    context.globalAlpha = 1
  }
}

/** A sheet nobody has written on. */
function drawEmpty(context, g, palette) {
  context.strokeStyle = palette.rule
  context.lineWidth = 1
  for (let y = g.top; y < g.height - 2 * g.u; y += 0.7 * g.u) line(context, g.left, y, g.width - 1.5 * g.u, y)
}

/** One thin line per layer, a stronger one every five, so that rows can be counted. */
function drawRuling(context, g, palette) {
  const parts = [[g.left, g.readEnd]]
  if (g.columns > g.readColumns) parts.push([g.x(g.readColumns), g.end])
  context.lineWidth = 1
  for (let layer = 0; layer <= g.layers; layer++) {
    const y = Math.round(g.y(layer)) + 0.5
    context.strokeStyle = layer % 5 === 0 ? palette.ruleStrong : palette.rule
    for (const [a, b] of parts) line(context, a, y, b, y)
  }
  context.strokeStyle = palette.ghost
  context.strokeRect(g.left - 1.5, g.top - 0.5, g.readEnd - g.left + 3, g.bottom - g.top + 1)
  if (parts.length > 1) {
    context.setLineDash([3, 3])
    context.strokeRect(parts[1][0] - 1, g.top - 0.5, parts[1][1] - parts[1][0] + 2, g.bottom - g.top + 1)
    context.setLineDash([])
  }
}

function drawLooks(context, g, scene, moment) {
  const { lens, palette } = scene
  const { row, looks } = scene.looks(moment)
  const { layer } = lens.choice
  if (!looks.length) return
  const strongest = new Map()
  for (const { weight, column } of looks) {
    const c = g.columnOf(column)
    strongest.set(c, Math.max(strongest.get(c) ?? 0, weight))
  }
  context.fillStyle = palette.mark
  for (const [column, weight] of [...strongest].slice(0, 24)) {
    const alpha = shade(weight)
    context.globalAlpha = alpha * 0.3
    context.fillRect(g.x(column), g.top, g.pitch, g.y(layer) - g.top)
    context.globalAlpha = alpha
    context.fillRect(g.x(column) - g.pitch * 0.3, g.y(layer) - band(g), g.pitch * 1.6, g.row + 2 * band(g))
  }
  context.globalAlpha = 0.4
  context.strokeStyle = palette.markInk
  context.lineWidth = 1
  context.strokeRect(g.left - 1, g.y(layer) - band(g), g.x(g.columnOf(row)) + g.pitch - g.left + 2, g.row + 2 * band(g))
  context.globalAlpha = 1
}

/** How far the looked-at row's frame reaches over its neighbours. */
const band = (g) => Math.min(g.row * 0.75, 0.35 * g.u)

function line(context, x1, y1, x2, y2) {
  context.beginPath()
  context.moveTo(x1, y1)
  context.lineTo(x2, y2)
  context.stroke()
}
