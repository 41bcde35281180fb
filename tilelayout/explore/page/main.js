// The page at work: what people do to it, and how it begins.

function change(key, value) {
  page.state[key] = value;
  if (key === "shape") page.asked = value;
  if (key === "layout") page.state.shape = fittingShape();
  if (key === "layout" || key === "shape") page.origin = {};
  render();
  if (key === "layout" && !$("error").textContent) startSteps();
}

// The shape that was asked for, where the layout has so many elements; "", for the layout's own, where it has not.
function fittingShape() {
  const { state } = page;
  try {
    const layout = parseLayout(state.layout, AXES);
    const shape = readShape(page.asked);
    return shape && product(shape) !== sizeOf(layout) ? "" : page.asked;
  } catch (error) {
    if (!(error instanceof LayoutError)) throw error;
    return state.shape; // what can't be read yet is said, and nothing else changes
  }
}

// Whatever is typed is where the steps begin.
function startSteps() {
  const { layout, shape } = page.model;
  page.steps = [{ call: "", layout: layoutText(layout), shape: shapeText(shape) }];
  page.step = 0;
  showSteps();
}

function show(layout, shape, more = {}) {
  Object.assign(page.state, { layout, shape, at: "", on: "", color: "", ...more });
  page.asked = shape;
  page.origin = {};
  render();
}

// The step that is shown, -1 for none of them.
function findStep() {
  const text = page.model && layoutText(page.model.layout);
  page.step = page.steps.findIndex((step) => step.layout === text);
}

function perform(event) {
  event.preventDefault();
  const operation = $("operation").value;
  try {
    const { layout, shape } = modelOf(page.state);
    const after = performed(layout, operation, $("arguments").value, AXES);
    const here = { call: page.steps[page.step]?.call ?? "", layout: layoutText(layout), shape: shapeText(shape) };
    const next = { call: after.call, layout: layoutText(after.layout), shape: shapeText(after.shape ?? naturalShape(after.layout)) };
    page.steps = [...page.steps.slice(0, Math.max(page.step, 0)), here, next];
    page.step = page.steps.length - 1;
    $("refusal").textContent = "";
    show(page.steps[page.step].layout, page.steps[page.step].shape);
  } catch (error) {
    if (!(error instanceof LayoutError)) throw error;
    $("refusal").textContent = error.message;
  }
}

function listen() {
  for (const key of ["layout", "shape", "vector", "start"]) $(key).addEventListener("input", () => change(key, $(key).value));
  for (const key of ["bits", "palette", "access", "chunk", "color"]) $(key).addEventListener("change", () => change(key, $(key).value));
  for (const radio of document.getElementsByName("view")) radio.addEventListener("change", () => change("view", radio.value));
  $("form").addEventListener("submit", (event) => event.preventDefault());
  $("operate").addEventListener("submit", perform);
  $("operation").addEventListener("change", showHint);
  const grids = $("grids");
  grids.addEventListener("mouseover", (event) => hover(event.target));
  grids.addEventListener("mouseleave", () => showSelection(page.pinned));
  grids.addEventListener("focusin", (event) => {
    const table = tableOf(event.target);
    if (!table) return;
    const [r, c] = table.where(event.target);
    table.rest(r, c);
    const chosen = table.selection(r, c);
    if (chosen) pin(chosen);
  });
  grids.addEventListener("keydown", onKey);
  $("details").addEventListener("click", ({ target }) => {
    if (target.dataset.flat === undefined) return;
    pin({ flat: BigInt(target.dataset.flat) });
    reveal(page.pinned.flat);
  });
  $("steps").addEventListener("click", ({ target }) => {
    if (target.dataset.step === undefined) return;
    page.step = Number(target.dataset.step);
    show(page.steps[page.step].layout, page.steps[page.step].shape);
  });
  $("group").addEventListener("change", () => { listPresets(); choosePreset(); });
  $("preset").addEventListener("change", choosePreset);
  $("theme").addEventListener("click", toggleTheme);
  window.addEventListener("hashchange", () => {
    page.state = readLink(location.hash, page.state);
    page.asked = page.state.shape;
    page.origin = {};
    render();
    followLink();
  });
}

function toggleTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}

// --- choices ---------------------------------------------------------------------------------------------------

function options(texts) {
  return texts.map((text, k) => `<option value="${k}">${escapeText(text)}</option>`).join("");
}

const GROUPS = [...new Set(START.presets.map((preset) => preset.group))];

function presetsOfGroup() {
  const { value } = $("group");
  return value === "" ? [] : START.presets.filter((preset) => preset.group === GROUPS[Number(value)]);
}

function listPresets() {
  $("preset").innerHTML = options(presetsOfGroup().map((preset) => preset.name));
  $("preset").hidden = $("group").value === "";
}

function choosePreset() {
  const chosen = presetsOfGroup()[Number($("preset").value)];
  if (!chosen) return;
  show(chosen.layout, chosen.shape, { bits: chosen.bits, view: chosen.view });
  startSteps();
}

function showHint() {
  const { hint, says } = OPERATIONS[$("operation").value];
  $("arguments").placeholder = hint;
  $("arguments").title = says;
}

function begin() {
  const style = document.createElement("style");
  style.id = "palette-style";
  document.head.append(style);
  $("group").innerHTML = `<option value="">choose</option>${options(GROUPS)}`;
  $("operation").innerHTML = Object.keys(OPERATIONS).map((name) => `<option>${name}</option>`).join("");
  $("bits").innerHTML = [1, 2, 4, 8, 16, 32, 64, 128].map((n) => `<option>${n}</option>`).join("");
  $("palette").innerHTML = Object.keys(HOUSE.palettes).map((name) => `<option>${escapeText(name)}</option>`).join("");
  listPresets();
  showHint();
  const [first] = page.steps;
  $("operations").open = page.steps.length > 1;
  page.state = readLink(location.hash, { ...DEFAULTS, layout: first.layout, shape: first.shape, bits: START.bits, view: START.view });
  page.asked = page.state.shape;
  listen();
  render();
  followLink();
}

// A link may name one of the steps, or an element outside the window.
function followLink() {
  if (!page.model) return;
  findStep();
  if (page.step > 0) render();
  else showSteps();
  if (page.pinned?.flat !== undefined) reveal(page.pinned.flat);
}

globalThis.tilelayout = { answer };
begin();
