// @ts-check
/**
 * Prompt lookup, rule for rule as the engine does it (engine/run/speculation.py): tests hold both to the same cases. With it a
 * finished answer can be gone through again without a model: which words would have been guessed follows from the ids.
 */
/** @typedef {{ids: number[], at: number, size: number}} Guess */

const LONGEST = 3 // tokens that must stand earlier, if so many do

/**
 * What followed the latest earlier place where the text's last tokens stand, `most` tokens at most:
 * {ids, at, size}, the place and how many tokens of it are the same; no ids where there is none.
 *
 * @param {number[]} text
 * @param {number} most
 * @returns {Guess}
 */
export function lookUp(text, most) {
  for (let size = Math.min(LONGEST, text.length - 1); size > 0; size--) {
    const ending = text.length - size
    for (let at = ending - 1; at >= 0; at--) {
      let same = 0
      while (same < size && text[at + same] === text[ending + same]) same++
      if (same === size) return { ids: text.slice(at + size, at + size + most), at, size }
    }
  }
  return { ids: [], at: -1, size: 0 }
}

/**
 * The passes after prefill in which an answer would have come with at most `most` guesses each: [{ids, at, size, accepted}].
 * Exact, since guesses never change an answer. `limit` is the answer's bound in tokens.
 *
 * @param {number[]} prompt
 * @param {number[]} answer
 * @param {number} most
 */
export function rehearse(prompt, answer, most, limit = answer.length) {
  const passes = []
  const text = [...prompt, ...answer.slice(0, 1)]
  while (text.length - prompt.length < answer.length) {
    const chosen = text.length - prompt.length
    const room = Math.min(most, limit - chosen - 1)
    const guess = room > 0 ? lookUp(text, room) : { ids: [], at: -1, size: 0 }
    let right = 0
    while (right < guess.ids.length && guess.ids[right] === answer[chosen + right]) right++
    const accepted = Math.min(right, answer.length - chosen - 1)
    passes.push({ ...guess, accepted })
    text.push(...answer.slice(chosen, chosen + accepted + 1))
  }
  return passes
}

/** Sums over passes: {steps, drafting, offered, accepted}. @param {{ids: number[], accepted: number}[]} passes */
export function totals(passes) {
  return {
    steps: passes.length,
    drafting: passes.filter(({ ids }) => ids.length).length,
    offered: passes.reduce((sum, { ids }) => sum + ids.length, 0),
    accepted: passes.reduce((sum, { accepted }) => sum + accepted, 0),
  }
}
