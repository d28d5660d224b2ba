// The first part of the page: one mask, its vectors, whether it fits into intervals, and what leaks.

const MATRICES = {
  "a window": ["11000", "11100", "01110", "00111", "00011"],
  "demonstrations": ["1000", "0100", "0010", "1111"],
  "all but itself": ["0111", "1011", "1101", "1110"],
  "two documents": ["10000", "11000", "00111", "00111", "00111"],
};

function startMaskView() {
  const form = byId("mask-form");
  const fields = new BuilderFields(byId("mask-builder"), "mask", "seq2seq", null, () => update());
  const matrix = byId("mask-matrix-text");
  for (const [name, rows] of Object.entries(MATRICES)) {
    const button = element("button", { type: "button" }, name);
    button.addEventListener("click", () => {
      matrix.value = matrixText(rows.map((row) => [...row].map((sign) => sign === "1")));
      update();
    });
    byId("mask-matrix-examples").append(button);
  }
  matrix.value = matrixText(MATRICES["a window"].map((row) => [...row].map((sign) => sign === "1")));
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const input of form.querySelectorAll("#mask-changes input, [name=mask-origin], textarea")) {
    input.addEventListener("input", () => update());
  }
  byId("mask-predicts").addEventListener("change", () => update());
  byId("mask-pairs").addEventListener("input", () => update());
  whenResized(() => update());
  update();

  function update(cursorAt) {
    const isMatrix = form.elements["mask-origin"].value === "matrix";
    byId("mask-builder").hidden = isMatrix;
    byId("mask-changes").hidden = isMatrix;
    byId("mask-matrix").hidden = !isMatrix;
    byId("mask-error").textContent = "";
    try {
      if (isMatrix) showMatrix(readMatrix(matrix.value), cursorAt);
      else showMask(...built());
    } catch (error) {
      byId("mask-error").textContent = error.message;
    }
  }

  /** The mask that the fields describe, the targets of its query stream, and the call in Python. */
  function built() {
    const streamText = byId("mask-query-stream").value;
    const options = {
      queryStream: streamText.trim() ? readIntegers("query stream", streamText) : null,
      sinks: readInteger("sinks", byId("mask-sinks").value),
      memory: readInteger("memory", byId("mask-memory").value),
      withoutSelf: byId("mask-without-self").checked,
    };
    const mask = changedMask(fields.read().mask, options);
    let python = `mask = ${fields.python()}`;
    if (options.queryStream) python += `.query_stream(${pythonList(options.queryStream)})`;
    if (options.sinks) python += `.with_sinks(${options.sinks})`;
    if (options.memory) python += `.with_memory(${options.memory})`;
    if (options.withoutSelf) python += ".without_self()";
    return [mask, options, python];
  }

  function showMask(mask, options, python) {
    checkDrawable(mask.queryStep.length, mask.keyStart.length);
    drawPicture(byId("mask-picture"), byId("mask-cell"), pictureOfMask(mask));
    byId("mask-vectors").textContent = vectorsText(mask) + (mask.excludeSelf ? "\nexclude_self = True" : "");
    byId("mask-python").textContent = `from unified import masks\n\n${python}`;
    showFit(denseOf(mask), mask.keyStart.length, mask.excludeSelf);
    showLeaks(mask, options);
  }

  function showMatrix(dense, cursorAt) {
    checkDrawable(dense.length, dense[0].length);
    const toggle = (query, key) => {
      dense[query][key] = !dense[query][key];
      matrix.value = matrixText(dense);
      update([query, key]);
    };
    const part = forbiddingSubmatrix(dense);
    const mask = part === null ? maskOfDense(dense, dense[0].length) : null;
    const picture = mask ? pictureOfMask(mask) : pictureOfMatrix(dense, part);
    drawPicture(byId("mask-picture"), byId("mask-cell"), picture, { onToggle: toggle, cursorAt });
    byId("mask-vectors").textContent = mask ? vectorsText(mask) : "There are none.";
    const rows = dense.map((row) => pythonList(row.map(Number))).join(",\n    ");
    const visible = `torch.tensor([\n    ${rows}\n]).bool()`;
    byId("mask-python").textContent = mask
      ? `import torch\n\nfrom unified import masks\n\nmask = masks.from_dense(${visible})`
      : `import torch\n\nvisible = ${visible}  # attn_mask of torch's scaled_dot_product_attention`;
    showFit(dense, dense[0].length, false);
    if (mask) showLeaks(mask, { queryStream: null, memory: 0 });
    else showNoLeaks();
  }

  function showFit(dense, keyCount, excludeSelf) {
    const recovered = byId("mask-recovered");
    if (!isInterval(dense)) {
      const flag = excludeSelf ? " Here the flag exclude_self says what the vectors cannot." : "";
      byId("mask-fits").textContent = `No: ${refusal(dense)}.${flag}`;
      recovered.hidden = true;
      return;
    }
    byId("mask-fits").textContent =
      "Yes: some order of the queries makes the readers of every key consecutive. " +
      "The index of a query in that order is its step.";
    recovered.hidden = false;
    byId("mask-recovered-vectors").textContent = vectorsText(maskOfDense(dense, keyCount));
  }

  function showNoLeaks() {
    byId("mask-leak-fields").hidden = true;
    byId("mask-pairs-error").textContent = "";
    byId("mask-transitive").textContent = "Leaks are looked for in masks of intervals alone.";
    byId("mask-leaks").replaceChildren();
  }

  function showLeaks(mask, options) {
    byId("mask-leak-fields").hidden = false;
    const predicts = byId("mask-predicts");
    const stream = predicts.querySelector("[value=targets]");
    stream.disabled = !options.queryStream;
    if (stream.disabled && predicts.value === "targets") predicts.value = "next";
    if (options.queryStream && predicts.value !== "own") predicts.value = "targets"; // its queries have no own keys
    const pairs = byId("mask-pairs");
    pairs.readOnly = predicts.value !== "own";
    if (pairs.readOnly) pairs.value = pairsText(predictionsOf(mask, predicts.value, options));
    byId("mask-pairs-error").textContent = "";
    byId("mask-transitive").textContent = isTransitive(mask)
      ? "Transitive: stacked layers show nobody anything that one layer does not."
      : "Not transitive: through several layers some query reaches keys that one layer hides from it.";
    try {
      listLeaks(findLeaks(mask, readPairs(pairs.value)), pairs.value.trim() === "");
    } catch (error) {
      byId("mask-pairs-error").textContent = error.message;
      byId("mask-leaks").replaceChildren();
    }
  }

  function listLeaks(leaks, none) {
    const words = leaks.slice(0, 12).map(leakText);
    if (leaks.length > 12) words.push(`and ${leaks.length - 12} more`);
    if (none) words.push("Nothing is predicted.");
    else if (!leaks.length) words.push("Nothing leaks: no prediction can reach its own label.");
    byId("mask-leaks").replaceChildren(...words.map((text) => element("li", {}, text)));
  }
}

/** Pairs [query, key of the label] of a usual choice. */
function predictionsOf(mask, choice, options) {
  if (choice === "targets") return options.queryStream.map((target, query) => [query, target + options.memory]);
  const by = choice === "next" ? 1 : -1;
  return mask.ownKeys
    .map((key, query) => [query, key + by])
    .filter(([, label]) => label >= options.memory && label < mask.keyStart.length);
}

function pairsText(pairs) {
  return pairs.map((pair) => pair.join(":")).join(", ");
}

/** "0:1, 1:2" as pairs of numbers. */
function readPairs(text) {
  const words = text.split(/[\s,]+/).filter(Boolean);
  return words.map((word) => {
    if (!/^\d+:-?\d+$/.test(word)) throw new Error(`write pairs such as 0:1, 1:2; got "${word}"`);
    return word.split(":").map(Number);
  });
}
