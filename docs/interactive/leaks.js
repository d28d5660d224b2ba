// Which predictions can reach their own labels through any number of layers. Mirrors unified/masks/leakage.py.
//
// After several layers the state of a query depends on its own token and on whatever it reaches along visible keys: it
// sees a key, the query of that token sees further keys, and so on.

const LONGEST_CHAIN = 6; // longer chains are cut where a leak is spelled out

/** Whether stacked layers show every query exactly the keys that one layer shows it. */
function isTransitive(mask) {
  const visible = denseOf(mask);
  return visible.every((row) =>
    visible.every((passed, owner) => {
      const key = mask.ownKeys[owner];
      return key === NO_KEY || !row[key] || passed.every((seen, further) => !seen || row[further]);
    }),
  );
}

/**
 * The predictions that can reach their own label. `predictions` are pairs [query that is read, key that holds the
 * label]; a label key of -1 means that the input holds the label nowhere. Returns objects {query, labelKey, through},
 * where `through` lists the keys that pass the label on, by a shortest way.
 */
function findLeaks(mask, predictions) {
  const view = classesOf(mask);
  const leaks = [];
  for (const [query, labelKey] of predictions) {
    checkIndex("query", query, 0, mask.queryStep.length, "queries");
    checkIndex("label key", labelKey, -1, mask.keyStart.length, "keys");
    if (labelKey < 0) continue;
    const through = mask.ownKeys[query] === labelKey ? [] : shortestChain(view, query, labelKey);
    if (through !== null) leaks.push({ query, labelKey, through });
  }
  return leaks;
}

function checkIndex(name, value, least, count, what) {
  if (!Number.isInteger(value) || value < least || value >= count) {
    throw new Error(`${name} ${value} does not exist: the mask has ${count} ${what}`);
  }
}

/** Queries of one step see the same keys: one class. Classes are numbered by their steps. */
function classesOf(mask) {
  const steps = [...new Set(mask.queryStep)].sort((a, b) => a - b);
  const classOfQuery = mask.queryStep.map((step) => steps.indexOf(step));
  // A query holds its own token anyway, so excludeSelf changes nothing here.
  const visible = steps.map((step) => mask.keyStart.map((start, key) => start <= step && step < mask.keyStop[key]));
  const owners = range(mask.queryStep.length)
    .filter((query) => mask.ownKeys[query] !== NO_KEY)
    .map((query) => ({ key: mask.ownKeys[query], ofClass: classOfQuery[query] }));
  return { classOfQuery, visible, owners };
}

/** The keys between a query and a key that it reaches, found breadth-first; null where it does not reach the key. */
function shortestChain(view, query, labelKey) {
  const start = view.classOfQuery[query];
  const readerOf = new Map(); // class -> the class that sees its key, and that key
  const found = new Set([start]);
  let layer = [start];
  while (!layer.some((reader) => view.visible[reader][labelKey])) {
    const next = new Map(); // class -> the first of its keys that the layer sees
    for (const owner of view.owners) {
      const seen = layer.some((reader) => view.visible[reader][owner.key]);
      if (seen && !found.has(owner.ofClass) && !next.has(owner.ofClass)) next.set(owner.ofClass, owner.key);
    }
    if (!next.size) return null;
    for (const [ofClass, key] of next) {
      found.add(ofClass);
      readerOf.set(ofClass, { reader: layer.find((reader) => view.visible[reader][key]), key });
    }
    layer = [...next.keys()].sort((a, b) => a - b);
  }
  let last = layer.find((reader) => view.visible[reader][labelKey]);
  const chain = [];
  while (last !== start) {
    const { reader, key } = readerOf.get(last);
    chain.unshift(key);
    last = reader;
  }
  return chain;
}

/** A leak in words. */
function leakText(leak) {
  if (!leak.through.length) return `query ${leak.query} is shown its own label, key ${leak.labelKey}, directly`;
  let seen = [...leak.through, leak.labelKey].map((key) => `sees key ${key}`);
  let rest = "";
  if (seen.length > LONGEST_CHAIN) {
    rest = `, and so on, ${seen.length - 3} more steps to key ${leak.labelKey}`;
    seen = seen.slice(0, 3);
  }
  return `query ${leak.query} ${seen.join(", which ")}${rest}, its own label`;
}
