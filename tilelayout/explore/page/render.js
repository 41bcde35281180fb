// What the page shows of its state: the grids, what is wrong, the legend, the steps, the link.

const $ = (id) => document.getElementById(id);
const TITLES = { logical: "logical: each element, its holders", hardware: "hardware: each place, its elements", banks: "shared memory: lines by banks" };
const page = {
  state: { ...DEFAULTS },
  asked: "", // the shape that was last asked for; the state's is "" while it doesn't fit
  steps: START.steps, // { call, layout, shape }, texts; the first is where they begin
  step: 0,
  model: null,
  tables: [],
  origin: {},
  pinned: null,
};

function modelOf(state) {
  const layout = parseLayout(state.layout, AXES);
  const shape = shapeFor(layout, readShape(state.shape));
  let inverse = null;
  const here = page.steps[page.step];
  const earlier = page.step > 0 && here.layout === layoutText(layout) ? page.steps[page.step - 1] : null;
  const before = earlier && { layout: parseLayout(earlier.layout, AXES), shape: readShape(earlier.shape) };
  return {
    layout, shape, before, call: here?.call, bits: Number(state.bits), chunk: Number(state.chunk),
    inverse: () => (inverse ??= inverseOf(layout)),
  };
}

function gridsOf(model, state) {
  const { layout, shape } = model;
  const color = colorChoices(layout).includes(state.color) ? state.color : "";
  const make = {
    logical: () => logicalGrid(layout, shape, color, page.origin.logical ?? [0n, 0n]),
    hardware: () => hardwareGrid(layout, shape, color, page.origin.hardware ?? [0n, 0n], model.inverse()),
    banks: () => {
      const access = accessOf(state.access, shape, Number(state.vector), Number(state.start), model.bits);
      return bankGrid(layout, shape, model.bits, access, model.chunk, page.origin.banks ?? [0n, 0n]);
    },
  };
  const names = state.view === "both" ? ["logical", "hardware"] : [state.view];
  return names.map((name) => {
    try {
      return make[name]();
    } catch (error) {
      if (!(error instanceof LayoutError)) throw error;
      return { name, refused: error.message };
    }
  });
}

function colorChoices(layout) {
  return ["", ...movingAxes(layout).sort(compareAxes), "m//8", "none"];
}

// --- rendering -------------------------------------------------------------------------------------------------

function render() {
  const { state } = page;
  showInputs();
  try {
    page.model = modelOf(state);
    showError(null);
  } catch (error) {
    if (!(error instanceof LayoutError)) throw error;
    showError(error);
    return;
  }
  const { model } = page;
  $("shape").placeholder = shapeText(naturalShape(model.layout));
  const grids = gridsOf(model, state);
  const drawn = grids.filter((grid) => !grid.refused);
  const colors = paintedKeys(drawn, state.palette);
  $("grids").innerHTML = grids.map((grid) => (grid.refused
    ? `<section class="view"><h2>${TITLES[grid.name]}</h2><p class="note" role="alert">${escapeText(grid.refused)}</p></section>`
    : tableText(grid, TITLES[grid.name], colors))).join("");
  $("palette-style").textContent = paletteStyle(state.palette);
  page.tables = drawn.map((grid) => new Table(grid, $(grid.name)));
  showChoices(model);
  showLegend(drawn, colors);
  showSteps();
  page.pinned = readSelection(state, model);
  showSelection(page.pinned);
  writeLink();
}

function showInputs() {
  for (const key of ["layout", "shape", "bits", "palette", "access", "vector", "start", "chunk"]) {
    if ($(key).value !== page.state[key]) $(key).value = page.state[key];
  }
  for (const radio of document.getElementsByName("view")) radio.checked = radio.value === page.state.view;
  $("access-controls").hidden = page.state.view !== "banks";
}

function showError(error) {
  $("error").textContent = error ? error.message : "";
  const ofShape = error && (error.operation === "shape" || /^shape /.test(error.rule));
  $("layout").setAttribute("aria-invalid", String(Boolean(error && !ofShape)));
  $("shape").setAttribute("aria-invalid", String(Boolean(ofShape)));
  $("grids").classList.toggle("stale", Boolean(error));
}

function showChoices(model) {
  const choices = colorChoices(model.layout);
  const label = (choice) => choice || `default (${defaultColor(model.layout)})`;
  $("color").innerHTML = choices.map((c) => `<option value="${escapeText(c)}">${escapeText(label(c))}</option>`).join("");
  $("color").value = choices.includes(page.state.color) ? page.state.color : "";
}

function showLegend(grids, colors) {
  const groups = new Map();
  for (const [key, index] of colors) groups.set(index, [...(groups.get(index) ?? []), key]);
  const what = page.state.view === "banks" ? "16-byte vector of the row" : $("color").selectedOptions[0].text;
  const short = (keys) => (keys.length <= 4 ? keys : [...keys.slice(0, 3), "...", keys.at(-1)]).join(", ");
  const swatches = [...groups].sort(([a], [b]) => a - b).map(([index, keys]) => `<span class="swatch k${index}">${short(keys)}</span>`);
  const words = shortLegend(movingAxes(page.model.layout));
  $("legend").innerHTML = `${escapeText(words)}${swatches.length ? `; color: ${escapeText(what)} ${swatches.join("")}` : ""}`;
}

function showSteps() {
  $("steps").innerHTML = page.steps.map((step, k) => {
    const current = k === page.step ? ' aria-current="step"' : "";
    const name = step.call ? `${step.call}: ` : "";
    return `<li><button type="button" data-step="${k}"${current}>${escapeText(`${name}${step.layout}  (${step.shape})`)}</button></li>`;
  }).join("");
}

function writeLink() {
  const link = linkOf(page.state);
  $("link").value = link;
  if (location.protocol === "about:") return; // a frame in a notebook has no address of its own
  try {
    history.replaceState(null, "", link);
  } catch {
    // Some viewers forbid it: the link stands in its field.
  }
}
