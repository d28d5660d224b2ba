// The second part of the page: several documents in a row, and the tiles that an attention kernel reads.

function startPackingView() {
  const list = byId("packing-documents");
  const documents = [];
  let made = 0;
  add("seq2seq", [6, 3]);
  add("left_to_right", [7]);
  add("bidirectional", [4]);
  byId("packing-add").addEventListener("click", () => {
    const first = add("left_to_right", [3]);
    show();
    first.focus();
  });
  for (const id of ["packing-length", "packing-tile"]) byId(id).addEventListener("input", show);
  byId("packing-form").addEventListener("submit", (event) => event.preventDefault());
  whenResized(show);
  show();

  /** Adds a document at the end; returns its first field. */
  function add(name, values) {
    made += 1;
    const item = element("li");
    const space = element("div");
    const remove = element("button", { type: "button" }, "Remove");
    const fields = new BuilderFields(space, `document-${made}`, name, values, show);
    const own = { fields, item };
    documents.push(own);
    item.append(space, element("div", { class: "buttons" }, remove));
    list.append(item);
    remove.addEventListener("click", () => {
      documents.splice(documents.indexOf(own), 1);
      item.remove();
      show();
      byId("packing-add").focus();
    });
    return fields.choice;
  }

  function show() {
    byId("packing-error").textContent = "";
    try {
      const length = readInteger("the tokens of the row", byId("packing-length").value);
      const size = readInteger("the tile size", byId("packing-tile").value);
      checkDrawable(length, length);
      const row = packMasks(documents.map((own) => own.fields.read().mask), length);
      const kinds = tilesOf(row, size);
      drawPicture(byId("packing-picture"), byId("packing-cell"), pictureOfMask(row), {
        tiles: { kinds, size },
        label: `A row of ${documents.length} documents, ${length} tokens`,
      });
      byId("packing-vectors").textContent = vectorsText(row);
      count(kinds.flat());
      map(kinds);
    } catch (error) {
      byId("packing-error").textContent = error.message;
    }
  }

  function count(kinds) {
    const numberOf = (kind) => kinds.filter((own) => own === kind).length;
    const [full, partial, empty] = [numberOf("full"), numberOf("partial"), numberOf("empty")];
    byId("packing-count").textContent =
      `${full} full, ${partial} partial, ${empty} empty: ${full + partial} of ${kinds.length} tiles are read.`;
  }

  /** A table with a cell for every tile. */
  function map(kinds) {
    const heads = range(kinds.length ? kinds[0].length : 0).map((tile) => element("th", { scope: "col" }, `${tile}`));
    const rows = kinds.map((row, tile) => {
      const cells = row.map((kind) => element("td", { class: kind }, kind === "empty" ? "–" : kind));
      return element("tr", {}, element("th", { scope: "row" }, `${tile}`), ...cells);
    });
    const head = element("tr", {}, element("th", { scope: "col" }, "queries \\ keys"), ...heads);
    byId("packing-tiles").replaceChildren(element("table", { class: "tile-map" }, head, ...rows));
  }
}
