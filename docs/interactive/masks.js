// Attention masks in three integers per token. Mirrors unified/masks: builders.py, steps.py, mask.py and packing.py.
//
// A query sees a key when keyStart[key] <= queryStep[query] < keyStop[key]. A mask is an object of
//   queryStep     one number per query: the step at which it looks
//   keyStart      one number per key: the step from which on it is visible
//   keyStop       one number per key: the step from which on it is no longer visible
//   documentEnds  one number per document: where its part of the time axis ends
//   ownKeys       one number per query: the index of its own key, or NO_KEY
//   excludeSelf   true if no query sees its own key

const GIVEN = 0; // the step of what is visible from the start
const NOWHERE = 2 ** 31 - 1; // a step at which nothing is visible: padding
const HIDDEN_START = 2 ** 31 - 1; // keyStart and keyStop of a key that no query sees
const HIDDEN_STOP = -(2 ** 31);
const NO_KEY = -1;
const NO_DOCUMENT = -1;

// ---------------------------------------------------------------------- small helpers

/** [0, 1, ..., count - 1] */
function range(count) {
  return Array.from({ length: count }, (_, index) => index);
}

function maximum(numbers, least) {
  return numbers.reduce((a, b) => Math.max(a, b), least);
}

function minimum(numbers, most) {
  return numbers.reduce((a, b) => Math.min(a, b), most);
}

function checkInteger(name, value, least) {
  if (!Number.isInteger(value) || value < least) {
    throw new Error(`${name} must be an integer of at least ${least}`);
  }
}

function checkIntegers(name, values, least) {
  for (const value of values) {
    if (!Number.isInteger(value)) throw new Error(`${name} must be integers with commas between them`);
    if (value < least) throw new Error(`${name} must be at least ${least}, got ${value}`);
  }
}

/** A mask of tokens that are query and key at once; keyStart may be the steps of the queries. */
function maskOfTokens(queryStep, keyStart, keyStop, end) {
  return { queryStep, keyStart, keyStop, documentEnds: [end], ownKeys: range(queryStep.length), excludeSelf: false };
}

/** Tokens that look at the step at which they appear, and never disappear. */
function lasting(step, end) {
  return maskOfTokens(step, step, step.map(() => end), end);
}

// ---------------------------------------------------------------------- builders

/**
 * Every builder of unified.masks. The arguments have the names and the order that they have in Python. `kind` says what
 * the page asks for: "length" (0 or more), "size" (1 or more), "reach" (0 or more, or null for all), "steps" (a list of
 * 0 or more) or "parents" (a list of -1 or more). `value` is what the page begins with.
 */
const BUILDERS = {
  bidirectional: {
    about: "Every token sees every token (BERT).",
    parameters: [{ name: "length", kind: "length", value: 7 }],
    build: (length) => maskOfTokens(Array(length).fill(GIVEN), Array(length).fill(GIVEN), Array(length).fill(1), 1),
  },
  left_to_right: {
    about: "A token sees itself and what stands before it (language models). Also called causal.",
    parameters: [{ name: "length", kind: "length", value: 7 }],
    build: (length) => lasting(range(length).map((index) => 1 + index), length + 1),
  },
  right_to_left: {
    about: "A token sees itself and what follows it (UniLM).",
    parameters: [{ name: "length", kind: "length", value: 7 }],
    build: (length) => lasting(range(length).map((index) => length - index), length + 1),
  },
  seq2seq: {
    about: "The source sees itself, a target token the source and the target up to itself (UniLM). Also: prefix LM.",
    parameters: [
      { name: "source_length", kind: "length", value: 4 },
      { name: "target_length", kind: "length", value: 3 },
    ],
    build: (source, target) =>
      lasting(range(source + target).map((index) => Math.max(1 + index - source, GIVEN)), target + 1),
  },
  permutation: {
    about: "Tokens appear in any order, some are given: XLNet's content stream. 0 is given; steps may tie.",
    parameters: [{ name: "steps", kind: "steps", value: [0, 3, 1, 0, 2, 4, 1] }],
    build: (steps) => lasting(steps, 1 + maximum(steps, 0)),
  },
  sliding_window: {
    about: "A token sees itself and its neighbours, `left` before and `right` behind it (Longformer, Mistral). Empty: all.",
    parameters: [
      { name: "length", kind: "length", value: 8 },
      { name: "left", kind: "reach", value: 2 },
      { name: "right", kind: "reach", value: 0 },
    ],
    build: slidingWindow,
  },
  block_causal: {
    about: "A token sees its own block and the blocks before it.",
    parameters: [
      { name: "length", kind: "length", value: 8 },
      { name: "size", kind: "size", value: 3 },
    ],
    build: (length, size) =>
      lasting(range(length).map((index) => 1 + Math.floor(index / size)), 1 + Math.ceil(length / size)),
  },
  block_diffusion: {
    about: "A text twice, noised and then clean. A noised block sees itself and the clean blocks before it (BD3LM).",
    parameters: [
      { name: "length", kind: "length", value: 6 },
      { name: "size", kind: "size", value: 2 },
    ],
    build: blockDiffusion,
  },
  pseudo_masked: {
    about: "UniLM v2: the corrupted text, then for every step the [P] copies and the originals of its tokens.",
    parameters: [{ name: "steps", kind: "steps", value: [0, 2, 1, 0, 1] }],
    build: pseudoMasked,
  },
  tree: {
    about: "A token sees itself and its ancestors: shared prefixes, drafts. A list of parents; -1 is a root.",
    parameters: [{ name: "parents", kind: "parents", value: [-1, 0, 1, 1, 0, 4, 4] }],
    build: tree,
  },
};

/** The mask of a builder; `values` in the order of its parameters. Throws an Error that names a wrong argument. */
function buildMask(name, values) {
  const builder = BUILDERS[name];
  builder.parameters.forEach((parameter, index) => {
    const value = values[index];
    if (parameter.kind === "length") checkInteger(parameter.name, value, 0);
    if (parameter.kind === "size") checkInteger(parameter.name, value, 1);
    if (parameter.kind === "reach" && value !== null) checkInteger(parameter.name, value, 0);
    if (parameter.kind === "steps") checkIntegers(parameter.name, value, GIVEN);
    if (parameter.kind === "parents") checkIntegers(parameter.name, value, -1);
  });
  return builder.build(...values);
}

function slidingWindow(length, left, right) {
  const end = length + 1;
  const step = range(length).map((index) => 1 + index);
  const start = step.map((own) => (right === null ? GIVEN : Math.max(own - right, GIVEN)));
  const stop = step.map((own) => (left === null ? end : Math.min(own + left + 1, end)));
  return maskOfTokens(step, start, stop, end);
}

/** Noised block b looks and appears at step 2b + 1 and disappears before the clean one appears, at 2b + 2. */
function blockDiffusion(length, size) {
  const end = 2 * Math.ceil(length / size) + 1;
  const blocks = range(length).map((index) => Math.floor(index / size));
  const step = [...blocks.map((block) => 2 * block + 1), ...blocks.map((block) => 2 * block + 2)];
  const stop = step.map((own, index) => (index < length ? own + 1 : end));
  return maskOfTokens(step, step, stop, end);
}

/** The text is given; of the tokens of step s, the [P] copies are visible at 2s alone, the originals from 2s + 1 on. */
function pseudoMasked(steps) {
  const predicted = steps.filter((step) => step > GIVEN);
  const step = [
    ...steps.map(() => GIVEN),
    ...predicted.map((own) => 2 * own),
    ...predicted.map((own) => 2 * own + 1),
  ].sort((a, b) => a - b); // stable: tokens of one step keep the order of the text
  const end = 2 + 2 * maximum(steps, 0);
  const stop = step.map((own) => (own > GIVEN && own % 2 === 0 ? own + 1 : end));
  return maskOfTokens(step, step, stop, end);
}

/** A token appears when a depth-first walk enters it, and disappears when the walk leaves it. */
function tree(parents) {
  const children = new Map();
  parents.forEach((parent, token) => {
    if (parent >= parents.length) {
      throw new Error(`parents must lie within the ${parents.length} tokens, or be -1, got ${parent}`);
    }
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(token);
  });
  const entry = parents.map(() => 0);
  const leaving = parents.map(() => 0);
  let step = 1;
  function walk(token) {
    entry[token] = step;
    step += 1;
    (children.get(token) ?? []).forEach(walk);
    leaving[token] = step;
  }
  (children.get(-1) ?? []).forEach(walk);
  const circle = entry.indexOf(0);
  if (circle >= 0) {
    throw new Error(`parents must lead to a root (-1), but token ${circle} is below itself or below such a token`);
  }
  return maskOfTokens(entry, entry, leaving, parents.length + 1);
}

// ---------------------------------------------------------------------- what a mask of one document can be changed to

/**
 * The mask with what the page's options add to it, in the order of `unified masks show`.
 * options: queryStream (list of targets, or null), sinks, memory (numbers), withoutSelf (true or false).
 */
function changedMask(mask, options) {
  let changed = mask;
  if (options.queryStream) changed = queryStream(changed, options.queryStream);
  if (options.sinks) changed = withSinks(changed, options.sinks);
  if (options.memory) changed = withMemory(changed, options.memory);
  return options.withoutSelf ? { ...changed, excludeSelf: true } : changed;
}

/** Queries that predict the targets and do not see them: each looks at the step before its target appears. */
function queryStream(mask, targets) {
  const given = givenKeys(mask);
  for (const target of targets) {
    if (!Number.isInteger(target) || target < 0 || target >= mask.queryStep.length) {
      throw new Error(`targets must lie within the row of ${mask.queryStep.length} tokens, got ${target}`);
    }
    if (given[mask.ownKeys[target]]) {
      throw new Error(`targets must appear at a step of at least 1, but token ${target} is given from the start`);
    }
  }
  const queryStep = targets.map((target) => mask.keyStart[mask.ownKeys[target]] - 1);
  targets.forEach((target, query) => {
    if (mask.keyStop.some((stop) => queryStep[query] < stop && stop <= mask.queryStep[target])) {
      throw new Error(
        `targets must see all that is visible at the step before they appear, but token ${target} does not; ` +
          "query_stream takes masks whose keys do not disappear",
      );
    }
  });
  return { ...mask, queryStep, ownKeys: targets.map(() => NO_KEY) };
}

/** The first keys do not disappear (attention sinks). */
function withSinks(mask, count) {
  checkInteger("sinks", count, 0);
  const end = mask.documentEnds[0];
  return { ...mask, keyStop: mask.keyStop.map((stop, key) => (key < count ? end : stop)) };
}

/** So many keys in front that every query sees (Transformer-XL, XLNet). */
function withMemory(mask, length) {
  checkInteger("memory", length, 0);
  return {
    ...mask,
    keyStart: [...Array(length).fill(GIVEN), ...mask.keyStart],
    keyStop: [...Array(length).fill(mask.documentEnds[0]), ...mask.keyStop],
    ownKeys: mask.ownKeys.map((key) => (key === NO_KEY ? NO_KEY : key + length)),
  };
}

// ---------------------------------------------------------------------- what a mask says

/** The rule: whether a query sees a key. */
function sees(mask, query, key) {
  const step = mask.queryStep[query];
  if (mask.excludeSelf && mask.ownKeys[query] === key) return false;
  return mask.keyStart[key] <= step && step < mask.keyStop[key];
}

/** Rows of true and false, one for each query. */
function denseOf(mask) {
  return mask.queryStep.map((_, query) => mask.keyStart.map((_, key) => sees(mask, query, key)));
}

/** The number of the document at a step: the first one that ends behind it. */
function documentAt(mask, step) {
  const number = mask.documentEnds.findIndex((end) => step < end);
  return number < 0 ? NO_DOCUMENT : number;
}

/** One number per query, NO_DOCUMENT for padding. */
function queryDocuments(mask) {
  return mask.queryStep.map((step) => (step === NOWHERE ? NO_DOCUMENT : documentAt(mask, step)));
}

/** One number per key, NO_DOCUMENT for keys that no query sees. */
function keyDocuments(mask) {
  return mask.keyStart.map((start, key) => (start >= mask.keyStop[key] ? NO_DOCUMENT : documentAt(mask, start)));
}

/** One true or false per key: visible from the first step of its document on. */
function givenKeys(mask) {
  const starts = [0, ...mask.documentEnds];
  return keyDocuments(mask).map((document, key) => mask.keyStart[key] <= starts[Math.max(document, 0)]);
}

// ---------------------------------------------------------------------- several documents in a row

/**
 * One row of `length` tokens that holds masks of builders one after another; what is left of the row is padding. The
 * time axes stand one after another too, so no document sees another.
 */
function packMasks(masks, length) {
  checkInteger("length", length, 0);
  const queryStep = [];
  const keyStart = [];
  const keyStop = [];
  const documentEnds = [];
  let offset = 0; // the step at which the part of the axis of the next mask begins
  masks.forEach((mask, index) => {
    for (const step of mask.queryStep) queryStep.push(step + offset);
    for (const start of mask.keyStart) keyStart.push(start + offset);
    for (const stop of mask.keyStop) keyStop.push(stop + offset);
    if (keyStart.length > length) {
      throw new Error(
        `document ${index} does not fit: documents 0 to ${index} have ${keyStart.length} tokens, the row has ${length}`,
      );
    }
    offset += mask.documentEnds[0];
    documentEnds.push(offset);
  });
  const padding = length - keyStart.length;
  return {
    queryStep: [...queryStep, ...Array(padding).fill(NOWHERE)],
    keyStart: [...keyStart, ...Array(padding).fill(HIDDEN_START)],
    keyStop: [...keyStop, ...Array(padding).fill(HIDDEN_STOP)],
    documentEnds: documentEnds.length ? documentEnds : [0],
    ownKeys: range(length),
    excludeSelf: false,
  };
}
