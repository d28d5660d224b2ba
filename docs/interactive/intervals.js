// From a matrix back to the three vectors, or the keys and queries for which there are none.
// Mirrors unified/masks/intervals.py, which explains the method.
//
// A matrix of true and false (queries, keys) is a mask of intervals exactly when its rows can be ordered so that the
// readers of every key are consecutive. The index of a query in that order is its step; a key is visible from its first
// reader to its last.

const SPELLED_OUT = 8; // how many keys, and how many queries, a refusal spells out

/**
 * The mask of a matrix with so many keys, as one document. Throws an Error that names the keys and queries that forbid
 * it.
 */
function maskOfDense(dense, keyCount) {
  const { rows, numbers } = distinctRows(dense);
  const order = rowOrder(rows, rows.map((row) => row.filter(Boolean).length));
  if (order === null) throw new Error(refusal(dense));
  const stepOfRow = Array(rows.length).fill(0);
  order.forEach((row, step) => {
    stepOfRow[row] = step;
  });
  const keyStart = [];
  const keyStop = [];
  for (const key of range(keyCount)) {
    const readers = order.map((row) => rows[row][key]);
    const first = readers.indexOf(true);
    keyStart.push(first < 0 ? HIDDEN_START : first);
    keyStop.push(first < 0 ? HIDDEN_STOP : readers.lastIndexOf(true) + 1);
  }
  const queryStep = numbers.map((row) => stepOfRow[row]);
  return {
    queryStep,
    keyStart,
    keyStop,
    documentEnds: [1 + maximum(queryStep, -1)],
    ownKeys: range(dense.length).map((query) => (dense.length === keyCount ? query : NO_KEY)),
    excludeSelf: false,
  };
}

function isInterval(dense) {
  return rowOrder(distinctRows(dense).rows, null) !== null;
}

/**
 * Queries and keys whose part of the matrix alone cannot be said by steps and intervals; null if there are none.
 * At most 8 queries and 8 keys are a smallest choice: without any one of them the rest is a mask of intervals.
 */
function forbiddingSubmatrix(dense) {
  if (isInterval(dense)) return null;
  const { rows, firsts } = distinctRows(dense);
  const keys = neededOf(rows[0].length, (chosen) => !isInterval(columnsOf(rows, chosen)));
  const few = distinctRows(columnsOf(rows, keys));
  const chosen = neededOf(few.rows.length, (some) => !isInterval(some.map((row) => few.rows[row])));
  const queries = chosen.map((row) => firsts[few.firsts[row]]);
  const ascending = (a, b) => a - b;
  return { queries: queries.sort(ascending), keys: keys.sort(ascending) };
}

function columnsOf(rows, columns) {
  return rows.map((row) => columns.map((column) => row[column]));
}

function transposed(rows) {
  return rows.length ? rows[0].map((_, column) => rows.map((row) => row[column])) : [];
}

/** The distinct rows in the order in which they first occur, the number of each row there, and where each is first. */
function distinctRows(dense) {
  const seen = new Map();
  const firsts = [];
  const numbers = dense.map((row, index) => {
    const text = row.map(Number).join("");
    if (!seen.has(text)) {
      seen.set(text, seen.size);
      firsts.push(index);
    }
    return seen.get(text);
  });
  return { rows: firsts.map((index) => dense[index]), numbers, firsts };
}

/** Shrinks 0 .. count - 1 to a choice for which `fails` still holds; see _needed in intervals.py. */
function neededOf(count, fails) {
  const chosen = [];
  let candidates = range(count);
  while (!fails(chosen)) {
    if (chosen.length === SPELLED_OUT) return [...chosen, ...candidates];
    let low = 1;
    let high = candidates.length;
    let middle = high - 1;
    while (low < high) {
      if (fails([...chosen, ...candidates.slice(0, middle)])) high = middle;
      else low = middle + 1;
      middle = Math.floor((low + high) / 2);
    }
    chosen.push(candidates[low - 1]);
    candidates = candidates.slice(0, low - 1);
  }
  return chosen;
}

/**
 * Orders distinct rows so that the trues of every column are consecutive; null if no order does.
 * `seen` says how many keys each row sees, which decides directions; null where the order itself is not wanted.
 */
function rowOrder(rows, seen) {
  const columns = distinctRows(transposed(rows)).rows.filter((column) => column.some(Boolean));
  const seenByRow = seen ?? rows.map(() => 0);
  const components = [];
  for (const members of overlapComponents(columns)) {
    const cellOfRow = consecutiveCells(members.map((member) => columns[member]));
    if (cellOfRow === null) return null;
    components.push({ size: cellOfRow.filter((cell) => cell >= 0).length, columns: members.length, cellOfRow });
  }

  // Top down: each component divides the innermost cell that contains it. Of two with the same rows, the one that is a
  // single column contains the other.
  components.sort((a, b) => b.size - a.size || a.columns - b.columns);
  const cell = rows.map(() => 0); // the innermost cell of each row
  const divided = [[]]; // for each cell, the cells of the components directly within
  for (const { cellOfRow } of components) {
    const firstInside = cellOfRow.findIndex((own) => own >= 0);
    const start = divided.length;
    const cells = range(maximum(cellOfRow, -1) + 1).map((number) => start + number);
    divided[cell[firstInside]].push(cells);
    cells.forEach(() => divided.push([]));
    cellOfRow.forEach((own, row) => {
      if (own >= 0) cell[row] = own + start;
    });
  }

  // Bottom up: a cell is its own row (there is at most one: rows differ), which sees least, then its components.
  const ordered = divided.map(() => []);
  cell.forEach((innermost, row) => ordered[innermost].push(row));
  for (const index of range(divided.length).reverse()) {
    const parts = divided[index].map((cells) => directed(cells.map((inner) => ordered[inner]), seenByRow));
    parts.sort((a, b) => Math.min(...a) - Math.min(...b));
    for (const part of parts) ordered[index].push(...part);
  }
  return ordered[0];
}

/** Joins cells forwards or backwards: the last row sees more keys, or else the first row is an earlier one. */
function directed(cells, seen) {
  const [first, last] = [cells[0], cells[cells.length - 1]];
  const forwards = seen[last[last.length - 1]];
  const backwards = seen[first[first.length - 1]];
  const turn = backwards > forwards || (backwards === forwards && Math.min(...last) < Math.min(...first));
  return (turn ? [...cells].reverse() : cells).flat();
}

/** The connected components of the columns that overlap: they meet, and neither contains the other. */
function overlapComponents(columns) {
  const sizes = columns.map((column) => column.filter(Boolean).length);
  function overlap(a, b) {
    const shared = columns[a].filter((seen, row) => seen && columns[b][row]).length;
    return shared > 0 && shared < sizes[a] && shared < sizes[b];
  }
  const free = columns.map(() => true);
  const components = [];
  for (const column of range(columns.length)) {
    if (!free[column]) continue;
    free[column] = false;
    const members = [column];
    for (const member of members) {
      // The list grows while it is walked.
      for (const other of range(columns.length)) {
        if (free[other] && overlap(member, other)) {
          free[other] = false;
          members.push(other);
        }
      }
    }
    components.push(members);
  }
  return components;
}

/**
 * Divides the rows of overlapping columns into ordered cells so that every column is consecutive cells. Returns the
 * number of each row's cell, -1 for rows in no column; null if there is no such order.
 */
function consecutiveCells(columns) {
  let cell = columns[0].map((seen) => (seen ? 0 : -1));
  for (const column of columns.slice(1)) {
    const count = maximum(cell, -1) + 1;
    const size = Array(count).fill(0);
    const met = Array(count).fill(0);
    cell.forEach((own, row) => {
      if (own < 0) return;
      size[own] += 1;
      if (column[row]) met[own] += 1;
    });
    const touched = range(count).filter((own) => met[own]);
    const [low, high, last] = [touched[0], touched[touched.length - 1], count - 1];
    const full = met.map((number, own) => number === size[own]);
    if (!full.slice(low + 1, high).every(Boolean)) return null; // also where the cells touched have a gap
    const beyond = column.map((seen, row) => seen && cell[row] < 0);
    const isBeyond = beyond.some(Boolean);
    const toTheEnd = isBeyond && high === last && full.slice(low + 1).every(Boolean);
    const toTheFront = isBeyond && !toTheEnd && low === 0 && full.slice(0, high).every(Boolean);
    if (isBeyond && !toTheEnd && !toTheFront) return null;
    const finer = cell.map((own, row) => {
      if (own < 0) return beyond[row] ? (toTheEnd ? 2 * last + 4 : 0) : -1; // 0 is free in front
      let index = 2 * own + 2;
      if (own === low && !toTheFront && column[row]) index += 1;
      if (own === high && !toTheEnd && !column[row]) index += 1;
      return index;
    });
    const used = [...new Set(finer.filter((index) => index >= 0))].sort((a, b) => a - b);
    cell = finer.map((index) => (index < 0 ? -1 : used.indexOf(index)));
  }
  return cell;
}

/** Why a matrix cannot be said, in the words of masks.from_dense. */
function refusal(dense) {
  const { queries, keys } = forbiddingSubmatrix(dense);
  const seen = queries
    .slice(0, SPELLED_OUT)
    .map((query) => `query ${query} sees ${listed(keys.filter((key) => dense[query][key]))}`);
  const left = queries.length - SPELLED_OUT;
  const more = left > 0 ? `; and so on for ${left} more queries` : "";
  return (
    "steps and intervals cannot say this mask: no order of the queries makes the readers of each of the keys " +
    `${listed(keys)} consecutive. Of these keys, ${seen.join("; ")}${more}`
  );
}

/** Joins numbers as in "0, 1 and 4"; a long list is cut. */
function listed(numbers) {
  let words = numbers.map(String);
  if (words.length > SPELLED_OUT + 1) {
    words = [...words.slice(0, SPELLED_OUT), `${words.length - SPELLED_OUT} more`];
  }
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;
}
