// Draws a mask: a row for each query, a column for each key, steps at the margins; and says what a cell means.

const CELL_CLASSES = ["cell-hidden", "cell-given", "cell-visible", "cell-own"];
const CELL_NAMES = ["hidden", "given from the start", "visible since its step", "the token itself"];
const MOST_DRAWN = 64; // queries or keys
const SMALLEST_NAMED = 11; // pixels of a cell: where cells are smaller, no names stand at the margins

/**
 * What there is to draw of a mask: `cells` (numbers of CELL_CLASSES and `cellNames`), the names at the margins, and
 * what a cell means in words.
 */
function pictureOfMask(mask) {
  const given = givenKeys(mask);
  const cells = denseOf(mask).map((row, query) =>
    row.map((seen, key) => {
      if (!seen) return 0;
      if (mask.ownKeys[query] === key) return 3;
      return given[key] ? 1 : 2;
    }),
  );
  return {
    cells,
    cellNames: CELL_NAMES,
    queryNames: mask.queryStep.map((step) => (step === NOWHERE ? "–" : String(step))),
    keyNames: keyNames(mask),
    describe: (query, key) => describeCell(mask, query, key),
  };
}

/** The picture of a mask with tokens at the margins in place of steps. */
function pictureOfTokens(mask, tokens) {
  function describe(query, key) {
    const verb = sees(mask, query, key) ? "sees" : "does not see";
    return `${tokens[query]} ${verb} ${tokens[key]}. ${describeCell(mask, query, key)}`;
  }
  return { ...pictureOfMask(mask), queryNames: tokens, keyNames: tokens, describe };
}

/** The picture of a matrix that is no mask of intervals; marks are the queries and keys that forbid it. */
function pictureOfMatrix(dense, marks) {
  return {
    cells: dense.map((row) => row.map((seen) => (seen ? 2 : 0))),
    cellNames: ["hidden", "", "visible", ""],
    queryNames: dense.map((_, query) => String(query)),
    keyNames: dense.length ? dense[0].map((_, key) => String(key)) : [],
    describe: (query, key) => `Query ${query} ${dense[query][key] ? "sees" : "does not see"} key ${key}.`,
    markedQueries: marks.queries,
    markedKeys: marks.keys,
  };
}

/** The step at which each key appears and, below it, the one at which it disappears, where some key does too early. */
function keyNames(mask) {
  const documents = keyDocuments(mask);
  const stays = documents.map((own, key) => own === NO_DOCUMENT || mask.keyStop[key] >= mask.documentEnds[own]);
  return documents.map((own, key) => {
    if (own === NO_DOCUMENT) return "–";
    const start = String(mask.keyStart[key]);
    return stays.every(Boolean) ? start : `${start}/${stays[key] ? "∞" : mask.keyStop[key]}`;
  });
}

function describeCell(mask, query, key) {
  const step = mask.queryStep[query];
  const looks = step === NOWHERE ? "is padding and sees nothing" : `looks at step ${step}`;
  const shown =
    mask.keyStart[key] >= mask.keyStop[key]
      ? "is hidden from all"
      : `is visible from step ${mask.keyStart[key]} until ${mask.keyStop[key]}`;
  const itself = mask.excludeSelf && mask.ownKeys[query] === key ? " No token sees itself here." : "";
  const answer = sees(mask, query, key) ? "It sees it." : "It does not see it.";
  return `Query ${query} ${looks}; key ${key} ${shown}. ${answer}${itself}`;
}

/**
 * Draws a picture into a container, and what the chosen cell means into `text`.
 * options: tiles {kinds, size} outlines tiles; markedRow outlines one query; onToggle(query, key) is called where a
 * cell is clicked or the space key is pressed; cursorAt [query, key] is where the cursor stands from the start; label
 * says what the picture shows.
 */
function drawPicture(container, text, picture, options = {}) {
  const { cells } = picture;
  const keyCount = picture.keyNames.length;
  if (!cells.length || !keyCount) {
    container.replaceChildren(element("p", { class: "hint" }, "Nothing to draw: there are no queries or no keys."));
    text.textContent = "";
    return;
  }
  const longestQuery = Math.max(...picture.queryNames.map((name) => name.length));
  const longestKey = Math.max(...picture.keyNames.map((name) => name.length));
  let left = 14 + 7 * longestQuery;
  let pitch = cellSize(container, left, keyCount);
  const named = pitch >= SMALLEST_NAMED;
  if (!named) {
    left = 3;
    pitch = cellSize(container, left, keyCount);
  }
  const upright = longestKey * 6.6 > pitch; // names that are wider than a column stand upright
  const above = !named ? 3 : upright ? 8 + 7 * longestKey : 18;
  const drawing = new Drawing(left + pitch * keyCount + 3, above + pitch * cells.length + 3);

  for (const code of range(CELL_CLASSES.length)) drawing.cells(cells, code, left, above, pitch);
  picture.queryNames.forEach((name, query) => {
    if (!named) return;
    const marked = picture.markedQueries?.includes(query) ? "marked" : "";
    const y = above + pitch * (query + 0.5) + 4;
    drawing.text(name, left - 6, y, { class: marked, "text-anchor": "end" });
  });
  picture.keyNames.forEach((name, key) => {
    if (!named) return;
    const marked = picture.markedKeys?.includes(key) ? "marked" : "";
    const x = left + pitch * (key + 0.5);
    if (upright) drawing.text(name, 0, 0, { class: marked, transform: `translate(${x + 4} ${above - 5}) rotate(-90)` });
    else drawing.text(name, x, above - 6, { class: marked, "text-anchor": "middle" });
  });
  if (options.tiles) drawTiles(drawing, options.tiles, cells.length, keyCount, left, above, pitch);
  if (options.markedRow !== undefined) {
    drawing.box(left, above + pitch * options.markedRow, pitch * keyCount, pitch, "row-mark");
  }
  const cursor = drawing.box(left, above, pitch, pitch, "cursor");
  cursor.setAttribute("visibility", "hidden");
  const label = options.label ?? `A mask of ${cells.length} queries and ${keyCount} keys`;
  drawing.root.setAttribute("aria-label", `${label}. The arrow keys move from cell to cell.`);
  container.replaceChildren(drawing.root, legend(picture, options));
  text.textContent = "";
  const grid = { left, above, pitch, queries: cells.length, keys: keyCount };
  moveCursor(drawing.root, cursor, grid, text, picture, options);
}

/** As large as fits, from 9 to 28 pixels; what is wider can be scrolled. */
function cellSize(container, left, keyCount) {
  const room = (container.clientWidth || 600) - left - 6;
  return Math.max(9, Math.min(28, Math.floor(room / keyCount)));
}

/** Outlines full and partial tiles and pales empty ones. */
function drawTiles(drawing, tiles, queryCount, keyCount, left, above, pitch) {
  for (const wanted of ["empty", "partial", "full"]) {
    tiles.kinds.forEach((row, queryTile) => {
      row.forEach((kind, keyTile) => {
        if (kind !== wanted) return;
        const [y, x] = [queryTile * tiles.size, keyTile * tiles.size];
        const height = Math.min(tiles.size, queryCount - y);
        const width = Math.min(tiles.size, keyCount - x);
        drawing.box(left + pitch * x, above + pitch * y, pitch * width, pitch * height, `tile-${kind}`);
      });
    });
  }
}

/** Lets the pointer and the arrow keys choose a cell, and says what it means. */
function moveCursor(root, cursor, grid, text, picture, options) {
  let query = 0;
  let key = 0;
  function show() {
    cursor.setAttribute("visibility", "visible");
    cursor.setAttribute("x", grid.left + grid.pitch * key);
    cursor.setAttribute("y", grid.above + grid.pitch * query);
    text.textContent = picture.describe(query, key);
  }
  function at(event) {
    const box = root.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - grid.left) / grid.pitch);
    const line = Math.floor((event.clientY - box.top - grid.above) / grid.pitch);
    if (column < 0 || column >= grid.keys || line < 0 || line >= grid.queries) return false;
    [query, key] = [line, column];
    show();
    return true;
  }
  root.addEventListener("pointermove", at);
  root.addEventListener("click", (event) => {
    if (at(event) && options.onToggle) options.onToggle(query, key);
  });
  root.addEventListener("focus", show);
  root.addEventListener("keydown", (event) => {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key in moves) {
      query = Math.min(Math.max(query + moves[event.key][0], 0), grid.queries - 1);
      key = Math.min(Math.max(key + moves[event.key][1], 0), grid.keys - 1);
      show();
    } else if (event.key === " " && options.onToggle) {
      options.onToggle(query, key);
    } else {
      return;
    }
    event.preventDefault();
  });
  if (options.cursorAt) {
    [query, key] = options.cursorAt;
    root.focus();
    show();
  }
}

/** The colours that the picture has, in words. */
function legend(picture, options) {
  const used = range(CELL_CLASSES.length).filter((code) => picture.cells.some((row) => row.includes(code)));
  const items = used.map((code) => {
    const colour = `background: var(--${CELL_CLASSES[code].replace("cell-", "")})`;
    return element("li", {}, element("i", { style: colour }), picture.cellNames[code]);
  });
  if (options.tiles) {
    items.push(element("li", {}, element("i", { style: "border: 2px solid var(--full)" }), "full tile"));
    items.push(element("li", {}, element("i", { style: "border: 1px dashed var(--text)" }), "partial tile"));
  }
  return element("ul", { class: "legend" }, ...items);
}

/** An SVG picture. */
class Drawing {
  constructor(width, height) {
    const viewBox = `0 0 ${width} ${height}`;
    this.root = this.make("svg", { width, height, viewBox, tabindex: 0, role: "application" });
  }

  make(name, attributes) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) if (value !== "") made.setAttribute(key, value);
    this.root?.append(made);
    return made;
  }

  /** All cells of one kind, as one path. */
  cells(cells, code, left, above, pitch) {
    const gap = pitch > 12 ? 1 : 0.5;
    const side = pitch - 2 * gap;
    const squares = cells.flatMap((row, query) =>
      row.map((own, key) =>
        own === code ? `M${left + pitch * key + gap} ${above + pitch * query + gap}h${side}v${side}h-${side}z` : "",
      ),
    );
    this.make("path", { d: squares.join(""), class: CELL_CLASSES[code] });
  }

  box(x, y, width, height, name) {
    return this.make("rect", { x, y, width, height, rx: 2, class: name });
  }

  text(words, x, y, attributes) {
    this.make("text", { x, y, ...attributes }).textContent = words;
  }
}
