// The third part of the page: a recorded beam search. docs/interactive/record.py makes the recording.

function startSearchView() {
  const source = byId("search-source");
  const slider = byId("search-step");
  RECORDINGS.searches.forEach((search, index) => {
    source.append(element("option", { value: index }, search.source.slice(1, -1).join(" ")));
  });
  source.addEventListener("change", () => {
    slider.value = 0;
    show();
  });
  slider.addEventListener("input", show);
  byId("search-back").addEventListener("click", () => move(-1));
  byId("search-next").addEventListener("click", () => move(1));
  whenResized(show);
  show();

  function move(by) {
    slider.value = Number(slider.value) + by;
    show();
  }

  function show() {
    const search = RECORDINGS.searches[Number(source.value)];
    slider.max = search.steps.length - 1;
    const number = Number(slider.value);
    const step = search.steps[number];
    byId("search-step-text").textContent = `${number + 1} of ${search.steps.length}`;
    byId("search-back").disabled = number === 0;
    byId("search-next").disabled = number === search.steps.length - 1;

    fillTable(
      byId("search-rows"),
      ["row", "log-prob.", "written so far"],
      step.rows.map((row, index) => [index, row.total, row.tokens.join(" ") || "(nothing)"]),
    );
    fillTable(
      byId("search-candidates"),
      ["row", "next", "log-prob.", "what happens"],
      step.candidates.map((candidate) => [candidate.row, candidate.token, candidate.total, candidate.fate]),
      step.candidates.map((candidate) => candidate.fate.replace(" ", "-")),
    );
    showFinished(search, number);

    const written = step.rows[0].tokens;
    const tokens = [...search.source, ...written, "<mask>"];
    const mask = buildMask("seq2seq", [search.source.length, written.length + 1]);
    const picture = pictureOfTokens(mask, tokens);
    drawPicture(byId("search-picture"), byId("search-cell"), picture, { markedRow: tokens.length - 1 });
  }

  /** The hypotheses that have ended up to and including this step; one of n tokens ends at step n. */
  function showFinished(search, number) {
    const ended = search.hypotheses.filter((hypothesis) => hypothesis.tokens.length <= number);
    fillTable(
      byId("search-finished"),
      ["score", "text"],
      ended.map((hypothesis) => [hypothesis.score, hypothesis.tokens.join(" ")]),
    );
    if (!ended.length) {
      byId("search-finished").replaceChildren(element("caption", { class: "hint" }, "Nothing has ended yet."));
    }
  }
}
