// The fourth part of the page: a recorded training batch. docs/interactive/record.py makes the recording.

// One line for each objective; lines differ by more than their colours.
const LINES = [
  { colour: "--given", dashes: "", border: "2px solid" },
  { colour: "--visible", dashes: "6 3", border: "2px dashed" },
  { colour: "--full", dashes: "2 3", border: "2px dotted" },
  { colour: "--mark", dashes: "", border: "4px solid" },
];

function startTrainingView() {
  const { rows, snapshots } = RECORDINGS.batch;
  const [rowChoice, updates, slider] = [byId("training-row"), byId("training-updates"), byId("training-prediction")];
  rows.forEach((_, index) => rowChoice.append(element("option", { value: index }, `${index}`)));
  snapshots.forEach((snapshot, index) => updates.append(element("option", { value: index }, `${snapshot.update}`)));
  updates.value = snapshots.length - 1;
  rowChoice.addEventListener("change", () => {
    slider.value = 0;
    show();
  });
  updates.addEventListener("change", show);
  slider.addEventListener("input", show);
  byId("training-back").addEventListener("click", () => move(-1));
  byId("training-next").addEventListener("click", () => move(1));
  whenResized(show);
  show();

  function move(by) {
    slider.value = Number(slider.value) + by;
    show();
  }

  function show() {
    const row = rows[Number(rowChoice.value)];
    const mask = { ...row.mask, ownKeys: range(row.tokens.length), excludeSelf: false };
    slider.max = row.predictions.length - 1;
    const number = Number(slider.value);
    const prediction = row.predictions[number];
    byId("training-prediction-text").textContent = `${number + 1} of ${row.predictions.length}`;
    byId("training-back").disabled = number === 0;
    byId("training-next").disabled = number === row.predictions.length - 1;
    showTokens(row, mask, prediction);
    showGuesses(prediction);
    showLosses();
    const picture = pictureOfTokens(mask, row.tokens);
    drawPicture(byId("training-picture"), byId("training-cell"), picture, { markedRow: prediction.index });
  }

  /** The tokens of the row; in front of every example the name of its objective. */
  function showTokens(row, mask, prediction) {
    const objectiveOf = new Map(row.predictions.map((own) => [row.documents[own.index], own.objective]));
    const predicted = new Set(row.predictions.map((own) => own.index));
    const parts = [];
    row.tokens.forEach((token, index) => {
      const document = row.documents[index];
      if (document !== row.documents[index - 1]) {
        const name = document === NO_DOCUMENT ? "padding" : objectiveOf.get(document);
        parts.push(element("span", { class: "example-name" }, name));
      }
      const classes = ["token"];
      if (document === NO_DOCUMENT) classes.push("padding");
      if (predicted.has(index)) classes.push("predicted");
      if (sees(mask, prediction.index, index)) classes.push("seen");
      if (index === prediction.index) classes.push("current");
      parts.push(element("span", { class: classes.join(" ") }, token));
    });
    byId("training-tokens").replaceChildren(...parts);
  }

  function showGuesses(prediction) {
    const snapshot = snapshots[Number(updates.value)];
    const found = snapshot.predictions[prediction.number];
    byId("training-question").textContent =
      `${prediction.objective}: the label at index ${prediction.index} is “${prediction.label}”`;
    const guesses = found.guesses.map(([symbol, probability]) => ({ symbol, probability }));
    if (!guesses.some((guess) => guess.symbol === prediction.label)) {
      guesses.push({ symbol: prediction.label, probability: found.label });
    }
    fillTable(
      byId("training-guesses"),
      ["symbol", "probability", "", ""],
      guesses.map(({ symbol, probability }) => [
        symbol,
        probability,
        element("span", { class: "bar", style: `width: ${(probability * 7).toFixed(2)}rem` }),
        symbol === prediction.label ? "the label" : "",
      ]),
      guesses.map(({ symbol }) => (symbol === prediction.label ? "right" : "")),
    );
  }

  /** A line for every objective; the vertical line is the chosen number of updates. */
  function showLosses() {
    const container = byId("training-losses");
    const width = Math.min(container.clientWidth || 480, 520);
    const [left, right, top, height] = [34, 8, 8, 190];
    const bottom = top + height;
    const lines = Object.entries(RECORDINGS.losses);
    const most = Math.ceil(Math.max(...lines.flatMap(([, losses]) => losses)));
    const drawing = new Drawing(width, bottom + 34);
    drawing.root.setAttribute("role", "img");
    drawing.root.removeAttribute("tabindex");
    const x = (update) => left + ((width - left - right) * update) / RECORDINGS.updates;
    const y = (loss) => bottom - (height * loss) / most;
    for (const loss of range(most + 1)) {
      drawing.make("line", { x1: left, x2: width - right, y1: y(loss), y2: y(loss), class: "axis" });
      drawing.text(loss, left - 6, y(loss) + 4, { "text-anchor": "end" });
    }
    for (const part of [0, 0.25, 0.5, 0.75, 1]) {
      const update = Math.round(part * RECORDINGS.updates);
      drawing.text(update, x(update), bottom + 16, { "text-anchor": part === 1 ? "end" : "middle" });
    }
    drawing.text("updates; the loss is in nats", left, bottom + 30, {});
    const chosen = x(snapshots[Number(updates.value)].update);
    drawing.make("line", { x1: chosen, x2: chosen, y1: top, y2: bottom, class: "row-mark" });
    lines.forEach(([, losses], index) => {
      const each = RECORDINGS.updates / losses.length; // updates behind one mean
      const points = losses.map((loss, index) => `${x((index + 0.5) * each).toFixed(1)},${y(loss).toFixed(1)}`);
      const { colour, dashes, border } = LINES[index];
      const style = `stroke: var(${colour}); stroke-dasharray: ${dashes}; stroke-width: ${parseInt(border)}px`;
      drawing.make("polyline", { points: points.join(" "), class: "line", style });
    });
    const names = lines.map(([name, losses], index) => {
      const style = `border-top: ${LINES[index].border} var(${LINES[index].colour})`;
      const line = element("i", { class: "line-sample", style });
      return element("li", {}, line, `${name}, at last ${losses[losses.length - 1].toFixed(2)}`);
    });
    drawing.root.setAttribute("aria-label", "Mean loss of every objective during training");
    container.replaceChildren(drawing.root, element("ul", { class: "legend" }, ...names));
  }
}
