/** The fixed parts of the scene, and names for those that are drawn into. */
import { button, el, tag } from './dom.js'

const ICONS = {
  home: 'M2 2h2v12H2zM14 2v12L5 8z',
  back: 'M13 2v12L4 8z',
  forward: 'M3 2v12l9-6z',
  play: 'M4 1.5v13l10.5-6.5z',
  pause: 'M3 2h3.6v12H3zM9.4 2H13v12H9.4z',
  link: 'M6.5 9.5l3-3M7.2 4.6l1.6-1.6a3 3 0 0 1 4.2 4.2l-1.6 1.6M8.8 11.4l-1.6 1.6a3 3 0 0 1-4.2-4.2l1.6-1.6',
}

export function icon(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg')
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path')
  svg.setAttribute('viewBox', '0 0 16 16')
  svg.setAttribute('aria-hidden', 'true')
  svg.classList.add(`icon-${name}`)
  path.setAttribute('d', ICONS[name])
  svg.append(path)
  return svg
}

/** A mark where the analogy stops; its sentence shows on hover, focus and tap (see controls.js). */
export function note(words, name) {
  return el(
    'button',
    {
      type: 'button',
      class: 'note',
      'data-note': name,
      'data-tip': words.notes[name],
      'aria-label': `${words.notes.sign}: ${words.notes[name]}`,
    },
    '≠',
  )
}

/** Answers {root, …parts}. `scene.words` are the words of the language. */
export function buildFrame(words) {
  const parts = {}
  const keep = (name, element) => (parts[name] = element)
  const sheet = (name, title, sub, ...rest) =>
    el(
      'section',
      { class: `sheet ${name}`, 'aria-label': title },
      el('header', {}, el('h2', {}, title, sub ? el('span', {}, sub) : ''), ...rest),
    )

  const top = el(
    'header',
    { class: 'top' },
    keep('actions', el('div', { class: 'actions' })),
    el('div', { class: 'rail' }, keep('rail', el('div', {})), keep('ways', el('nav', { 'aria-label': words.rail.label }))),
  )

  const say = el(
    'section',
    { class: 'say' },
    el(
      'div',
      {},
      el('div', { class: 'line' }, keep('headline', el('h1', {})), keep('headNote', note(words, 'headline'))),
      keep('sub', el('p', {})),
    ),
    el(
      'div',
      { class: 'clock' },
      keep('clock', el('output', { 'aria-label': words.head.clock })),
      keep('clockSub', el('div', {})),
    ),
  )

  const paper = sheet('exam', words.paper.title, words.paper.sub, keep('tokens', el('em', {})))
  paper.append(
    keep('paper', el('div', { class: 'paper', tabindex: 0, role: 'group', 'aria-label': words.paper.title })),
    keep(
      'lens',
      el(
        'div',
        { class: 'lens' },
        el('i', { class: 'swatch', 'aria-hidden': 'true' }),
        keep('lensLayer', el('select', { 'aria-label': `${words.lens.label}: ${words.lens.layer}` })),
        keep('lensHead', el('select', { 'aria-label': `${words.lens.label}: ${words.lens.head}` })),
        el(
          'label',
          {},
          keep('sink', el('input', { type: 'checkbox' })),
          el('span', {}, words.lens.sink),
          keep('sinkShare', el('span', {})),
        ),
        keep('lensTag', el('span', { class: 'lens-tag' })),
      ),
    ),
    keep('compose', el('form', { class: 'compose', hidden: true })),
  )

  const scratch = sheet('pad', words.scratch.title, words.scratch.sub)
  parts.scratchTitle = scratch.querySelector('h2')
  parts.scratchTitle.append(note(words, 'scratch'))
  scratch
    .querySelector('header')
    .append(el('em', {}, keep('bytes', el('b', {})), ` ${words.scratch.bytes} `, keep('bytesTag', el('span', {}))))
  scratch.append(
    keep(
      'grid',
      el(
        'div',
        { class: 'grid', role: 'img', 'aria-label': `${words.scratch.title}, ${words.scratch.sub}` },
        keep('back', el('canvas', {})),
        keep('notes', el('canvas', {})),
        keep('front', el('canvas', {})),
      ),
    ),
    el('div', { class: 'formula' }, keep('formula', el('span', {})), keep('formulaEnd', el('span', {}))),
  )

  const answer = sheet(
    'answer',
    words.answer.title,
    '',
    el('em', { class: 'conf' }, words.answer.unsure, el('i', {}), words.answer.sure),
  )
  answer.querySelector('h2').append(note(words, 'decode'))
  parts.decodeNote = answer.querySelector('.note')
  answer.append(
    keep('lines', el('div', { class: 'lines', tabindex: 0, role: 'group', 'aria-label': words.answer.title })),
    keep('small', el('p', { class: 'small', hidden: true })),
    keep('candidates', el('div', { class: 'cands' })),
  )

  const time = keep(
    'time',
    el(
      'section',
      { class: 'time', tabindex: 0, role: 'slider', 'aria-label': words.time.label, 'aria-valuemin': 0 },
      keep('timeline', el('canvas', { 'aria-hidden': 'true' })),
      keep('ttft', el('div', { class: 'bracket ttft' })),
      keep('tpot', el('div', { class: 'bracket tpot' })),
    ),
  )

  parts.root = el(
    'div',
    { class: 'exam-scene', role: 'region', 'aria-label': words.scene.label, lang: words.lang },
    top,
    say,
    keep('desk', el('div', { class: 'desk' }, paper, scratch, answer)),
    time,
    buildPlayer(words, keep),
    keep('moment', el('div', { class: 'unseen', 'data-moment': '' })),
    keep('live', el('div', { class: 'unseen', 'aria-live': 'polite' })),
    keep('sensor', el('i', { class: 'sensor', 'aria-hidden': 'true' })),
    keep('tip', el('div', { class: 'tip', role: 'tooltip', hidden: true })),
  )
  return parts
}

/** The player's row; `keep(name, element)` is told its parts. */
export function buildPlayer(words, keep) {
  const round = (name, shape) =>
    button(icon(shape), null, {
      class: 'round',
      'aria-label': words.player[name],
      'data-do': name,
      title: words.player[name],
    })
  const go = keep('go', el('button', { type: 'button', class: 'go', 'data-do': 'toggle' }, icon('play'), icon('pause')))
  const speeds = [
    [1, words.player.real],
    [0.1, '×0.1'],
    [0.05, '×0.05'],
    [0.02, '×0.02'],
    [0.01, '×0.01'],
  ]
  return el(
    'nav',
    { class: 'player', 'aria-label': words.player.keys, title: words.player.keys },
    round('home', 'home'),
    round('back', 'back'),
    go,
    round('forward', 'forward'),
    el('span', { class: 'label' }, words.player.speed),
    keep(
      'speeds',
      el(
        'span',
        { class: 'segments', role: 'group', 'aria-label': words.player.speed },
        ...speeds.map(([speed, name]) => el('button', { type: 'button', 'data-speed': speed }, name)),
      ),
    ),
    keep(
      'link',
      button(icon('link'), null, { class: 'round', 'aria-label': words.player.link, title: words.player.link }),
    ),
    el(
      'div',
      { class: 'run' },
      keep('run', el('span', {})),
      el('span', { class: 'tags' }, keep('saved', el('span', { class: 'saved' })), tag(words, 'measured'), tag(words, 'computed'), tag(words, 'recorded')),
    ),
  )
}
