// Which blocks of a mask an attention kernel has to read. Mirrors unified/masks/blocks.py.
//
// A run is a maximal stretch of tokens of one document inside one block. Two runs of the same document may hold a
// visible pair where the first key appears before the last query looks, and the last key disappears after the first
// query looks. A pair of whole blocks is fully visible exactly when the last key appears before the first query looks,
// and the first key disappears after the last query looks.

const LARGEST = 2 ** 31 - 1;
const SMALLEST = -(2 ** 31);

/** Rows of "full", "partial" and "empty", one row for each block of queries; for tokens that are query and key. */
function blocksOf(mask, blockSize) {
  checkInteger("block_size", blockSize, 1);
  const queryRuns = runsOf(queryDocuments(mask), blockSize);
  const keyRuns = runsOf(keyDocuments(mask), blockSize);
  const kinds = range(Math.ceil(mask.queryStep.length / blockSize)).map(() =>
    Array(Math.ceil(mask.keyStart.length / blockSize)).fill("empty"),
  );
  for (const queries of queryRuns) {
    for (const keys of keyRuns) {
      if (mayBeVisible(mask, queries, keys)) kinds[queries.block][keys.block] = "partial";
    }
  }
  kinds.forEach((row, queryBlock) => {
    row.forEach((_, keyBlock) => {
      if (isFull(mask, queryBlock, keyBlock, blockSize)) row[keyBlock] = "full";
    });
  });
  return kinds;
}

/** Stretches of one document in one block; what is hidden or padding is a run by itself. */
function runsOf(documents, blockSize) {
  const runs = [];
  documents.forEach((document, index) => {
    const block = Math.floor(index / blockSize);
    const last = runs[runs.length - 1];
    if (last && last.block === block && last.document === document) last.indices.push(index);
    else runs.push({ block, document, indices: [index] });
  });
  return runs;
}

function mayBeVisible(mask, queries, keys) {
  if (queries.document !== keys.document) return false;
  const steps = queries.indices.map((query) => mask.queryStep[query]);
  const lastLook = maximum(steps, SMALLEST);
  const firstLook = minimum(steps, LARGEST);
  const appears = minimum(keys.indices.map((key) => mask.keyStart[key]), LARGEST);
  const disappears = maximum(keys.indices.map((key) => mask.keyStop[key]), SMALLEST);
  return appears <= lastLook && firstLook < disappears;
}

/** A block that is cut off by the end of the row is never full. */
function isFull(mask, queryBlock, keyBlock, blockSize) {
  const queries = mask.queryStep.slice(queryBlock * blockSize, (queryBlock + 1) * blockSize);
  const starts = mask.keyStart.slice(keyBlock * blockSize, (keyBlock + 1) * blockSize);
  const stops = mask.keyStop.slice(keyBlock * blockSize, (keyBlock + 1) * blockSize);
  if (queries.length < blockSize || starts.length < blockSize) return false;
  return maximum(starts, SMALLEST) <= minimum(queries, LARGEST) && maximum(queries, SMALLEST) < minimum(stops, LARGEST);
}
