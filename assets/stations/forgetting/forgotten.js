/** What was measured of forgetting, as the page's parts look at it. */

export const WAYS = ['window', 'sink', 'heavy']

/** The paper, way and budget on show, of those that were measured; null while there is none. */
export function chosen(desk) {
  const papers = desk.lab.figures?.papers ?? {}
  const names = Object.keys(papers).filter((name) => WAYS.some((way) => Object.keys(papers[name].ways[way]).length))
  if (!names.length) return null
  const paper = names.includes(desk.paper) ? desk.paper : names[0]
  const ways = WAYS.filter((way) => Object.keys(papers[paper].ways[way]).length)
  const way = ways.includes(desk.way) ? desk.way : ways[0]
  const budgets = Object.keys(papers[paper].ways[way])
  const budget = budgets.includes(desk.budget) ? desk.budget : budgets.at(-1)
  Object.assign(desk, { paper, way, budget })
  return { names, papers, paper: papers[paper], ways, budgets, told: papers[paper].ways[way][budget] }
}
