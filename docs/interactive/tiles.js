// Which tiles of a mask an attention kernel has to read. Mirrors unified/masks/tiles.py.
//
// A span is a maximal stretch of tokens of one document inside one tile. Two spans of the same document may hold a
// visible pair where the first key appears before the last query looks, and the last key disappears after the first
// query looks. A pair of whole tiles is fully visible exactly when the last key appears before the first query looks,
// and the first key disappears after the last query looks.

const LARGEST = 2 ** 31 - 1;
const SMALLEST = -(2 ** 31);

/** Rows of "full", "partial" and "empty", one row for each tile of queries; for tokens that are query and key. */
function tilesOf(mask, tileSize) {
  checkInteger("block_size", tileSize, 1);
  const querySpans = spansOf(queryDocuments(mask), tileSize);
  const keySpans = spansOf(keyDocuments(mask), tileSize);
  const kinds = range(Math.ceil(mask.queryStep.length / tileSize)).map(() =>
    Array(Math.ceil(mask.keyStart.length / tileSize)).fill("empty"),
  );
  for (const queries of querySpans) {
    for (const keys of keySpans) {
      if (mayBeVisible(mask, queries, keys)) kinds[queries.tile][keys.tile] = "partial";
    }
  }
  kinds.forEach((row, queryTile) => {
    row.forEach((_, keyTile) => {
      if (isFull(mask, queryTile, keyTile, tileSize)) row[keyTile] = "full";
    });
  });
  return kinds;
}

/** Stretches of one document in one tile; what is hidden or padding is a span by itself. */
function spansOf(documents, tileSize) {
  const spans = [];
  documents.forEach((document, index) => {
    const tile = Math.floor(index / tileSize);
    const last = spans[spans.length - 1];
    if (last && last.tile === tile && last.document === document) last.indices.push(index);
    else spans.push({ tile, document, indices: [index] });
  });
  return spans;
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

/** A tile that is cut off by the end of the row is never full. */
function isFull(mask, queryTile, keyTile, tileSize) {
  const queries = mask.queryStep.slice(queryTile * tileSize, (queryTile + 1) * tileSize);
  const starts = mask.keyStart.slice(keyTile * tileSize, (keyTile + 1) * tileSize);
  const stops = mask.keyStop.slice(keyTile * tileSize, (keyTile + 1) * tileSize);
  if (queries.length < tileSize || starts.length < tileSize) return false;
  return maximum(starts, SMALLEST) <= minimum(queries, LARGEST) && maximum(queries, SMALLEST) < minimum(stops, LARGEST);
}
