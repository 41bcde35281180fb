// The selection, explained: holders and the formula of an element, the elements of a lane, a register or a bank.

function elementDetails(model, flat) {
  const found = explain(model.layout, model.shape, flat, HOUSE.told);
  const shared = !movingAxes(model.layout).some((a) => kindOf(a) === "thread");
  const { bits } = model;
  const holders = found.holders.map(({ place, lines }) => {
    const more = lines.length ? `<pre class="bits">${lines.map(escapeText).join("\n")}</pre>` : "";
    return `<li>${escapeText(placeText(place, bits, shared))}${more}</li>`;
  });
  const rest = found.copies - holders.length;
  return [
    `<h2>element (${coordinateText(found.coordinate)}) of ${bits} bits</h2>`,
    `<h3>held by</h3><ul id="holders">${holders.join("")}</ul>`,
    rest > 0 ? `<p class="note">and ${rest} more holders</p>` : "",
    `<h3>flat index, the last dimension fastest</h3><pre>${found.flatText}</pre>`,
    `<h3>digits, one for each iter</h3>${digitTable(found)}`,
    `<h3>sums along the axes</h3><pre id="sums">${found.sums.map((s) => escapeText(`${s.axis} = ${s.text}`)).join("\n")}</pre>`,
    originText(model, flat),
  ].join("");
}

function digitTable({ digits, flat }) {
  const rows = digits.map((d) => {
    const stride = d.axis === M ? `${d.stride}` : `${d.stride} @ ${d.axis}`;
    const digit = `${flat} // ${d.weight} % ${d.extent} = ${d.digit}`;
    return `<tr><td>c${d.k}</td><td>${d.extent}</td><td>${escapeText(stride)}</td><td>${digit}</td><td>${d.term}</td></tr>`;
  });
  const heads = ["", "extent", "stride", "digit", "term"].map((text) => `<th scope="col">${text}</th>`);
  return `<table><thead><tr>${heads.join("")}</tr></thead><tbody>${rows.join("")}</tbody></table>`;
}

// Where an element came from in the layout before the current step.
function originText(model, flat) {
  const { before, call } = model;
  if (!before) return "";
  const source = cameFrom(before.layout, call, flat, AXES);
  if (source === null) return "";
  const coordinate = coordinateText(digitsOf(source, before.shape));
  return `<h3>before ${escapeText(call)}</h3><p id="origin">element (${coordinate}) of (${coordinateText(before.shape)})</p>`;
}

function elementButtons(model, flats) {
  const shown = flats.slice(0, HOUSE.told).map((flat) => {
    const coordinate = digitsOf(flat, model.shape);
    return `<li><button type="button" data-flat="${flat}">(${coordinateText(coordinate)})</button></li>`;
  });
  const rest = flats.length - shown.length;
  return `<ul>${shown.join("")}</ul>${rest > 0 ? `<p class="note">and ${rest} more elements</p>` : ""}`;
}

// A place, or all places of a lane or a register.
function placeDetails(model, place, found) {
  const inverse = model.inverse();
  const whole = inverse.axes.every((a) => place.has(a));
  const name = whole
    ? placeText(place, model.bits, !inverse.axes.some((a) => kindOf(a) === "thread"))
    : [...place].map(([a, v]) => `${hasOwn(HOUSE.names, a) ? HOUSE.names[a] : a} ${v}`).join(", ");
  const note = inverse.partial ? `<p class="note">of the first ${inverse.partial} elements</p>` : "";
  if (!whole) {
    const rows = found.slice(0, HOUSE.told).map(({ place: p, flats }) => {
      const rest = new Map([...p].filter(([a]) => !place.has(a)));
      const shown = flats.map((flat) => `(${coordinateText(digitsOf(flat, model.shape))})`);
      return `<tr><td>${escapeText(placeKey(rest).replaceAll(",", ", "))}</td><td>${shown.join(" ")}</td></tr>`;
    });
    const more = found.length - rows.length;
    return `<h2>${escapeText(name)}</h2>${note}<h3>holds</h3><table id="holds"><tbody>${rows.join("")}</tbody></table>` +
      (more > 0 ? `<p class="note">and ${more} more places</p>` : "");
  }
  const flats = found.flatMap((entry) => entry.flats);
  const head = `<h2>${escapeText(name)}</h2>${note}<h3>holds</h3>`;
  if (!flats.length) return `${head}<p>no element</p>`;
  return `${head}<div id="holds">${elementButtons(model, flats)}</div>${elementDetails(model, flats[0])}`;
}

function memoryDetails(model, cell) {
  const bytes = BigInt(model.chunk);
  const first = cell.at / 8n;
  const banks = [mod(cell.at / 32n, 32n), mod(cell.at / 32n + bytes / 4n - 1n, 32n)];
  const name = `bytes ${first}-${first + bytes - 1n}, line ${cell.at / LINE_BITS}, ` +
    (banks[0] === banks[1] ? `bank ${banks[0]}` : `banks ${banks[0]}-${banks[1]}`);
  const signs = (cell.marks ?? []).map((mark) => `<p>${escapeText(HOUSE.signs[mark].join(" "))}</p>`).join("");
  const lanes = cell.lanes.length ? `<p>touched by lanes ${cell.lanes.join(", ")}</p>` : "";
  const head = `<h2>${name}</h2>${signs}${lanes}<h3>holds</h3>`;
  if (!cell.flats.length) return `${head}<p>no element</p>`;
  return `${head}<div id="holds">${elementButtons(model, cell.flats)}</div>${elementDetails(model, cell.flats[0])}`;
}
