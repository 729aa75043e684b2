/** The events of a run, from docs/trace.schema.json by `python -m tests.scripts.event_types`. */

export type TraceEvent =
  | Queued
  | Started
  | Reused
  | Layer
  | Prefilled
  | Chose
  | Decoded
  | Forgot
  | Wrote
  | Finished

/** A token the model could have chosen, with the model's own probability (before temperature and cuts). */
export interface Candidate {
  id: number
  text: string
  probability: number
}

/**
 * A token was chosen: the first one from the prompt's last position, then one after each `Decoded`.
 * `probability`, `rank` (0 is the likeliest) and `entropy` (in bits) are of the model's own distribution, before
 * temperature and cuts; `candidates` are its ten likeliest tokens, best first.
 */
export interface Chose {
  at: number
  token: Token
  probability: number
  rank: number
  entropy: number
  candidates: Candidate[]
  type: 'chose'
}

/**
 * One decode step: the chosen token at `position` went through the model, its K and V were appended.
 * `layer_seconds` as in `Layer` (one per layer; their sum plus `rest_seconds` is `seconds`). `together` is how
 * many runs shared this forward pass. `key_norms` and `value_norms`: one byte per layer for this position.
 * `read` is how many positions went through the model: this one alone, without notes all of them (`position + 1`), or
 * this one and its `drafts`: tokens guessed to come next, each with the model's probability in its place. The first
 * `accepted` of them were what was chosen anyway, and their notes stay (norms: one byte per layer and position).
 */
export interface Decoded {
  at: number
  position: number
  seconds: number
  layer_seconds: number[]
  rest_seconds: number
  kv: KV
  key_norms: string
  value_norms: string
  together: number
  read: number
  drafts: Candidate[]
  accepted: number
  type: 'decoded'
}

/** What is running. Everything a formula or a caption needs, read off the loaded model. */
export interface Facts {
  model: string
  weights_sha256: string
  layers: number
  heads: number
  kv_heads: number
  head_size: number
  hidden_size: number
  vocabulary: number
  /** Most positions the model was made for. */
  context: number
  layer_kinds: ('full' | 'sliding')[]
  /** Positions a sliding layer sees; 0 when no layer slides. */
  window: number
  parameters: number
  /** Resident bytes of the weights (tied ones counted once). */
  weight_bytes: number
  /** Bytes of one number in the KV cache: 2 for bf16, 4 for fp32. */
  value_bytes: number
  dtype: string
  /** Why this dtype: `asked`, `measured_faster`, `default`. */
  dtype_reason: string
  device: string
  device_name: string
  threads: number
  versions: [string, string][]
}

/**
 * The run is over. For `error` (and for bounds) `code` names a sentence and `values` fill its gaps.
 * `peak_bytes` is the device's peak of allocated memory during the run, where the device tells (CUDA), else 0.
 */
export interface Finished {
  at: number
  reason: 'eos' | 'length' | 'stop_string' | 'stopped' | 'timeout' | 'out_of_memory' | 'error'
  code: string
  values: ([string, string | number | number])[]
  peak_bytes: number
  type: 'finished'
}

/** The notes of `positions` were let go in all layers: nothing written from now on looks at them. */
export interface Forgot {
  at: number
  positions: number[]
  kv: KV
  type: 'forgot'
}

/**
 * Another run's beginning: its prompt and the first `kept` tokens it chose, whose notes are reused; then `token`,
 * which must be one of the candidates it had there, or the one it chose.
 */
export interface Fork {
  run: string
  kept: number
  token: number
}

/**
 * The KV cache of one run at a moment (empty for a run without notes). `bytes` is what the notes themselves take
 * (for layers with a sliding window: only what the window still holds; for a run that forgets: what it has not),
 * `allocated` what was reserved for the whole run.
 */
export interface KV {
  length: number
  bytes: number
  allocated: number
}

/** How a run's K and V are kept. At most one of the three ways that are not the plain one. */
export interface Keeping {
  /** As the model computes them, or squeezed, with their scales (`engine.cache.quantised`). */
  dtype: 'model' | 'fp8' | 'int8' | 'int4' | 'int2'
  /** Keep only this many of the newest positions, once the prompt is read; 0 keeps all (`engine.cache.forgetting`). */
  last: number
  /** And this many of the very first, the attention sink (Xiao et al. 2023). */
  first: number
  /** And this many of those that were looked at most (Zhang et al. 2023). */
  heavy: number
  /** In blocks of this many positions behind a block table (Kwon et al. 2023, `engine.cache.paged`); 0: in one. */
  block: number
}

/**
 * While prefill runs: layer `index` now holds K and V for positions [start, stop).
 * `seconds` is the time since the previous such mark in this forward pass: the interval ends when the layer's
 * attention is done, so it holds the MLP of the layer before. `key_norms` and `value_norms` hold one byte per
 * position: the Euclidean norm of its K (V) over all KV heads, see `norm_of`.
 */
export interface Layer {
  at: number
  index: number
  start: number
  stop: number
  seconds: number
  key_norms: string
  value_norms: string
  type: 'layer'
}

/**
 * One forward pass over prompt positions [start, stop) ended; several when prefill is chunked.
 * `rest_seconds` is the last interval of the pass: the last layer's MLP, final norm and vocabulary product.
 */
export interface Prefilled {
  at: number
  start: number
  stop: number
  seconds: number
  rest_seconds: number
  kv: KV
  type: 'prefilled'
}

/** The run waits; `ahead` runs are before it. */
export interface Queued {
  at: number
  ahead: number
  type: 'queued'
}

/**
 * The notes of positions [0, stop) were taken from another run, `run`, instead of being made: nothing was read.
 * `written` are the words that came along with them, as that run told them, on its clock (they count neither for TTFT
 * nor for TPOT), `text` what they had released and `held` how many came after that; where there are any, `stop` is
 * prompt + written. `key_norms` and `value_norms`: one byte per layer and position, layer by layer.
 */
export interface Reused {
  at: number
  run: string
  stop: number
  kv: KV
  key_norms: string
  value_norms: string
  written: Chose[]
  text: string
  held: number
  type: 'reused'
}

/**
 * One run's request. Plain values; everything that decides the answer is in here.
 * Raises nothing by itself: `check` knows the bounds, `engine.run` those that depend on the model.
 */
export interface Settings {
  prompt: string
  /** Name of a known model; empty means the default one. */
  model: string
  /** `chat` puts the prompt in the model's own chat template; `raw` gives it as it is. */
  mode: 'chat' | 'raw'
  /** What control tokens typed in the prompt become: literal text, or the real control token. */
  control: 'text' | 'control'
  max_new_tokens: number
  /** 0 is greedy. Otherwise logits are divided by it before sampling. */
  temperature: number
  /** Keep the k likeliest tokens; 0 keeps all. */
  top_k: number
  /** Keep the smallest set of tokens whose probabilities sum to at least this; 1 keeps all. */
  top_p: number
  /** Keep the tokens with at least this share of the likeliest one's probability; 0 keeps all. */
  min_p: number
  /**
   * Logits of tokens that are there already (the prompt's too) are divided by it, negative ones multiplied; 1 leaves
   * them (Keskar et al. 2019). Counts for greedy answers too.
   */
  repetition_penalty: number
  seed: number
  /** The answer ends before the first of these strings. */
  stop: string[]
  /** Seconds since the start was pressed after which the run ends as `timeout`. */
  timeout: number
  /** Bytes the KV cache may take before the run ends as `out_of_memory`, a bound set on purpose; 0: what there is. */
  memory: number
  /** Query heads `(layer, head)` whose output counts as zero, from the first token on. */
  heads_off: [number, number][]
  /** Go on from another run's words instead of reading the prompt. */
  fork: Fork | null
  /** Without, nothing is kept between two words: paper and answer so far are read again (`engine.run.reread`). */
  notes: boolean
  /** `fast`: torch's fused attention, which never makes the weights; `math`: as the formula stands, all of them. */
  kernel: 'fast' | 'math'
  /** K and V are read once for all query heads that share them; False repeats them for each of these first. */
  grouped: boolean
  /** Linears with the same input as one product and norms in one call (`engine.model.fuse`); False: each by itself. */
  fused: boolean
  keeping: Keeping
  /** Prompt tokens per prefill pass; 0: all at once, and 256 while others are writing. */
  chunk: number
  /** Most tokens guessed ahead and read together with the newest one; 0 guesses none (`engine.run.speculation`). */
  draft: number
  /**
   * Name of a smaller model with the same vocabulary that guesses them (`engine.run.drafting`); empty: they are
   * looked up in the text itself. Counts only where `draft` is not 0.
   */
  draft_model: string
  /** Take over the notes of an earlier run's prompt as far as the two prompts are the same, instead of reading it. */
  reuse: boolean
  /** How it is served beside others: at once, together with those who wait, or by itself (`engine.run.schedule`). */
  batching: 'continuous' | 'static' | 'alone'
}

/**
 * The engine took the run and tokenised its prompt.
 * `text` is the rendered prompt (chat template included). The person's own words are the tokens
 * `prompt[own_start:own_stop]`; everything else was put there by the template. `flagged` are positions in the
 * person's own words where a control token was typed (tokens when `settings.control` is `control`, else the
 * first token of each literal spelling). `cold` is true for the first run since the model was loaded.
 */
export interface Started {
  at: number
  facts: Facts
  settings: Settings
  text: string
  prompt: Token[]
  own_start: number
  own_stop: number
  tokenise_seconds: number
  cold: boolean
  flagged: number[]
  type: 'started'
}

/**
 * One token of a prompt or an answer.
 * `start` and `stop` are character offsets into the rendered prompt (or into the answer); tokens that hold
 * only part of a character cover that whole character. `text` shows the bytes: whole characters as they are,
 * bytes that are no whole character as `⟨E4⟩`; it never holds U+FFFD unless the token itself is that character.
 */
export interface Token {
  id: number
  text: string
  bytes: string
  start: number
  stop: number
  special: boolean
}

/** Text the incremental decoder released. A token that ends inside a character releases nothing yet. */
export interface Wrote {
  at: number
  text: string
  type: 'wrote'
}
