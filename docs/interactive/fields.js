// Small helpers that the views share: making elements, reading what was typed, the fields of a builder.

/** An element with attributes and children; those that are texts are shown as they are. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function byId(id) {
  return document.getElementById(id);
}

/** Fills a table; rows are lists of cells, a cell is a text, a number or an element. */
function fillTable(table, heads, rows, classes = []) {
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  const body = rows.map((cells, index) =>
    element(
      "tr",
      classes[index] ? { class: classes[index] } : {},
      ...cells.map((cell) => element("td", typeof cell === "number" ? { class: "number" } : {}, shown(cell))),
    ),
  );
  table.replaceChildren(element("thead", {}, head), element("tbody", {}, ...body));
}

/** What stands in a cell: fractions have three digits. */
function shown(cell) {
  if (typeof cell !== "number") return cell;
  return Number.isInteger(cell) ? `${cell}` : cell.toFixed(3);
}

/** "1, 3" as numbers; throws an Error that names what is no integer. */
function readIntegers(name, text) {
  const words = text.split(/[\s,]+/).filter(Boolean);
  return words.map((word) => {
    if (!/^-?\d+$/.test(word)) throw new Error(`${name} must be integers with commas between them, got "${word}"`);
    return Number(word);
  });
}

function readInteger(name, text) {
  if (!/^\s*-?\d+\s*$/.test(text)) throw new Error(`${name} must be an integer, got "${text.trim()}"`);
  return Number(text);
}

/** The matrix in a text: rows of 0 and 1 (or of . and x), or what Python prints. Rows of true and false. */
function readMatrix(text) {
  const plain = text.replaceAll("True", "1").replaceAll("False", "0");
  const cells = (line) => line.split(/[\s,[]+/).filter(Boolean).map((word) => word.replace(/^([01])\.0*$/, "$1"));
  const lines = plain.includes("[")
    ? listsIn(plain).split("]").map(cells)
    : plain.split(/[\n;]/).map((line) => cells(line).flatMap((word) => [...word]));
  const rows = lines.filter((line) => line.length);
  rows.forEach((row, index) => {
    const odd = row.find((sign) => sign.length > 1 || !"01.x·■".includes(sign));
    if (odd !== undefined) throw new Error(`row ${index} holds "${odd}"; a matrix is made of 0 and 1`);
    if (row.length !== rows[0].length) {
      throw new Error(`row ${index} has ${row.length} numbers, but row 0 has ${rows[0].length}`);
    }
  });
  if (!rows.length) throw new Error("the matrix has no rows yet");
  return rows.map((row) => row.map((sign) => "1x■".includes(sign)));
}

/** The lists in what Python prints, "[[1., 0.], [1., 1.]]" of "tensor([[1., 0.], [1., 1.]], device='cuda:0')". */
function listsIn(text) {
  const printed = /^\s*(?:\w+\s*=\s*)?(?:[\w.]*\()?\s*(\[.*\])(?:\s*,\s*\w+=[^\s,[\]]+)*[\s,]*\)?\s*$/s.exec(text);
  if (!printed) throw new Error("with brackets, a matrix is a list, an array or a tensor, such as [[1, 0], [1, 1]]");
  if (/\]\s*\][\s\],]*\[/.test(printed[1])) throw new Error("the text holds several matrices; this page shows one");
  return printed[1];
}

function matrixText(dense) {
  return dense.map((row) => row.map(Number).join(" ")).join("\n");
}

/** Throws an Error where a mask is larger than the page can show. */
function checkDrawable(queries, keys) {
  if (queries > MOST_DRAWN || keys > MOST_DRAWN) {
    throw new Error(`this page draws at most ${MOST_DRAWN} queries and keys, got ${queries} and ${keys}`);
  }
}

/** A list of numbers as Python writes it, with the names of its constants. */
function pythonList(numbers) {
  const names = { [HIDDEN_START]: "2**31 - 1", [HIDDEN_STOP]: "-2**31" };
  return `[${numbers.map((number) => names[number] ?? number).join(", ")}]`;
}

function vectorsText(mask) {
  return [
    `query_step = ${pythonList(mask.queryStep)}`,
    `key_start  = ${pythonList(mask.keyStart)}`,
    `key_stop   = ${pythonList(mask.keyStop)}`,
  ].join("\n");
}

/**
 * The choice of a builder and its arguments. Calls `onChange` after every change; `read()` returns {name, values,
 * mask}, or throws an Error that names what is wrong.
 */
class BuilderFields {
  constructor(container, id, name, values, onChange) {
    this.container = container;
    this.id = id;
    this.onChange = onChange;
    this.choice = element("select", { id: `${id}-name` });
    for (const known of Object.keys(BUILDERS)) this.choice.append(element("option", { value: known }, known));
    this.about = element("p", { class: "about" });
    this.fields = element("div", { class: "fields" });
    const label = element("label", { for: `${id}-name` }, "Mask");
    container.replaceChildren(label, this.choice, this.about, this.fields);
    this.choice.value = name;
    this.choice.addEventListener("change", () => {
      this.ask(null);
      this.onChange();
    });
    this.ask(values);
  }

  /** Makes a field for every argument of the builder. */
  ask(values) {
    const builder = BUILDERS[this.choice.value];
    this.about.textContent = builder.about;
    this.inputs = builder.parameters.map((parameter, index) => {
      const isList = parameter.kind === "steps" || parameter.kind === "parents";
      const value = values ? values[index] : parameter.value;
      const limits = isList ? {} : { type: "number", min: 0, max: MOST_DRAWN };
      const input = element("input", { id: `${this.id}-${parameter.name}`, ...limits });
      input.value = value === null ? "" : isList ? value.join(", ") : value;
      input.addEventListener("input", this.onChange);
      return input;
    });
    this.fields.replaceChildren(
      ...builder.parameters.map((parameter, index) => {
        const label = element("label", { for: this.inputs[index].id }, parameter.name);
        return element("div", {}, label, this.inputs[index]);
      }),
    );
  }

  read() {
    const name = this.choice.value;
    const values = BUILDERS[name].parameters.map((parameter, index) => {
      const text = this.inputs[index].value;
      if (parameter.kind === "steps" || parameter.kind === "parents") return readIntegers(parameter.name, text);
      if (parameter.kind === "reach" && text.trim() === "") return null;
      const value = readInteger(parameter.name, text);
      if (value > MOST_DRAWN) throw new Error(`${parameter.name} must be at most ${MOST_DRAWN} on this page`);
      return value;
    });
    return { name, values, mask: buildMask(name, values) };
  }

  /** The call in Python. */
  python() {
    const { name, values } = this.read();
    const written = BUILDERS[name].parameters.map((parameter, index) => {
      const value = values[index];
      return `${parameter.name}=${value === null ? "None" : Array.isArray(value) ? pythonList(value) : value}`;
    });
    return `masks.${name}(${written.join(", ")})`;
  }
}

/** Draws again when the width of the window has changed. */
function whenResized(draw) {
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    draw();
  });
}
