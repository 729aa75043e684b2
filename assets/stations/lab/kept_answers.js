/**
 * What another way of keeping notes does to an answer: the two answers, and word by word how far the model's choice is
 * from the exact one when it is given the same words.
 */
import { el, fill } from '../../scene/dom.js'
import { number, percent, visible } from '../../scene/text.js'

export const bits = (value) => (value === 0 ? '0' : value < 0.001 ? '<0.001' : number(value, value < 0.1 ? 3 : 2))

/** Rows of answers, the exact one first. `entries`: [{name, label, told}]; [data-answer=NAME] with data-right. */
export function answers({ words, lab }, entries) {
  const [first] = entries
  if (!first) return el('p', { class: 'hint' }, words.nothing)
  const row = (name, label, text, right, told) => el('tr', { 'data-answer': name, 'data-right': String(right) },
    el('th', { scope: 'row' }, label),
    el('td', { class: `right ${right}` }, words[right ? 'right' : 'wrong']),
    el('td', { class: 'answer', dir: 'auto' }, text || words.empty),
    el('td', { 'data-value': told?.kl_mean ?? '' }, ...(told ? [bits(told.kl_mean), ' ', lab.tag()] : ['–'])),
    el('td', { 'data-value': told?.agreed ?? '' }, told ? percent(told.agreed) : '–'))
  return el('div', { class: 'wide' }, el('table', { class: 'answers' },
    el('thead', {}, el('tr', {}, ...['way', 'fact', 'text', 'kl', 'agreed'].map((name) => el('th', { scope: 'col' }, words.heads[name])))),
    el('tbody', {}, row('exact', words.ways.exact, first.told.exact, first.told.exact_right, null),
      ...entries.map(({ name, label, told }) => row(name, label, told.text, told.right, told)))))
}

/** The exact answer's words; the darker, the further the other's choice was off. [data-words] holds the numbers. */
export function strip({ words }, told) {
  const most = Math.max(0.5, ...told.kl)
  return el('div', { class: 'forced', 'data-words': JSON.stringify(told.kl), 'data-agree': JSON.stringify(told.agree) },
    ...told.words.map((word, i) => el('span', {
      class: `piece${told.agree[i] ? '' : ' parts'}${told.kl[i] > most / 4 ? ' far' : ''}`, style: `--far: ${Math.round(100 * Math.sqrt(told.kl[i] / most))}%`, dir: 'auto',
      title: fill(words.word_far, { bits: bits(told.kl[i]) }),
    }, el('b', {}, visible(word)), el('i', {}, bits(told.kl[i])))))
}

/** A choice of one of several, as the stations' switches look. `choices`: [[value, label]]. */
export function choose(name, label, choices, chosen, onChoose) {
  return el('fieldset', { class: 'switch', 'data-choose': name }, el('legend', {}, label),
    ...choices.map(([value, text]) => el('label', {}, el('input', { type: 'radio', name, value, checked: value === chosen, onchange: () => onChoose(value) }), el('span', {}, text))))
}
