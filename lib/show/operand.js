// A tile, its descriptor and one element of it. Nothing of a layout is known here but that it
// repeats: see `lib.show.operand.table`, which made what is looked up.
"use strict";
var make = tools.make, grouped = tools.thousands;
var CHUNK = 16, LINE = 128, MAX_LINES = 32;
var rowField = tools.number("row"), kField = tools.number("k");
rowField.value = 13;
kField.value = 5;
var says = make("p", {"class": "live-says", "aria-live": "polite"});
var shown = make("div", {});
root.append(make("div", {"class": "live-numbers"},
  [tools.field("Row of M or N", rowField), tools.field("k", kField)]), says, shown);

function picked(row, k) {
  return function () { rowField.value = row; kField.value = k; update(); };
}

function update() {
  var of = tools.chosen(), reader = of[0], item = of[1], along = of[2] === "K";
  var side = of[4], rows = of[5], deep = of[6] / item;
  var tile = data.tiles[[reader, item, of[2], of[3], rows, of[6]].join(" ")];
  shown.replaceChildren();
  if (typeof tile === "number") {
    says.textContent = data.texts[tile] + ".";
    root.dataset.found = "";
    return;
  }
  var row = tools.value(rowField, rows), k = tools.value(kField, deep);
  var lines = along ? rows : deep, chunks = (along ? deep : rows) * item / CHUNK;
  var line = along ? row : k, byte = (along ? k : row) * item;
  var chunk = Math.floor(byte / CHUNK), atom = tile.atom === undefined ? null : data.atoms[tile.atom];

  function place(l, c) {
    var inside = atom ? atom[l % 8][c % tile.wide] * CHUNK
      : l % 8 * tile.pitch + c % tile.wide * CHUNK;
    return data.start + Math.floor(c / tile.wide) * tile.slab + Math.floor(l / 8) * 8 * tile.pitch +
      inside;
  }

  var address = place(line, chunk) + byte % CHUNK, bank = Math.floor(address / 4) % 32;
  // The eight chunks, 128 bytes, that are read at once.
  var four = of[3] === "128/32", high = four ? 4 : 8, across = 8 / high;
  var firstLine = Math.floor(line / high) * high, firstChunk = Math.floor(chunk / across) * across;
  function together(l, c) {
    return l >= firstLine && l < firstLine + high && c >= firstChunk && c < firstChunk + across;
  }

  says.textContent = "Row " + row + ", k " + k + ": byte " + grouped(address) + ", bank " + bank +
    ". The eight chunks that are read together take " + tools.plural(tile.waves, "wavefront") + ".";

  // -- pictures
  function cell(l, c) {
    var first = c * CHUNK / item;
    return {text: l + "." + c, kind: l === line && c === chunk ? "own" : together(l, c) ? "with" : "",
      pick: along ? picked(l, first) : picked(first, l)};
  }
  var window8 = Math.floor(chunk / 8) * 8, top8 = Math.floor(line / 8) * 8, i, j, list;
  var heads = [""], meant = [];
  for (j = window8; j < Math.min(window8 + 8, chunks); j++) { heads.push(String(j)); }
  while (heads.length < 9) { heads.push(""); }
  for (i = top8; i < Math.min(top8 + 8, lines); i++) {
    list = [String(i)];
    for (j = window8; j < window8 + 8; j++) { list.push(j < chunks ? cell(i, j) : ""); }
    meant.push(list);
  }
  var at = {};
  for (i = 0; i < lines; i++) { for (j = 0; j < chunks; j++) { at[place(i, j)] = [i, j]; } }
  var read = [];
  for (i = firstLine; i < firstLine + high; i++) {
    for (j = firstChunk; j < firstChunk + across; j++) { read.push(place(i, j)); }
  }
  var low = Math.floor(Math.min.apply(null, read) / LINE);
  var last = Math.min(low + MAX_LINES, Math.max(low + 8, Math.floor(Math.max.apply(null, read) / LINE)
    + 1));
  var lying = [];
  for (i = low; i < last; i++) {
    list = [grouped(i * LINE)];
    for (j = 0; j < LINE; j += CHUNK) {
      var here = at[i * LINE + j];
      list.push(here ? cell(here[0], here[1]) : {text: "", kind: ""});
    }
    lying.push(list);
  }
  var name = along ? "row" : "k";
  var conflict = tile.waves > 1 ? " live-bad" : "";
  shown.append(make("div", {"class": "live-pictures" + conflict}, [
    make("div", {"class": "live-picture"}, [
      make("p", {}, "As the matrix has it: " + name + "s down, chunks of 16 bytes (" + CHUNK / item +
        " elements) along " + (along ? "K" : "M or N")),
      tools.grid(heads, meant, "Lines of the matrix; " + says.textContent)]),
    make("div", {"class": "live-picture"}, [
      make("p", {}, "As it lies in shared memory: 128 bytes per line, " + name +
        ".chunk in each cell, the first bank above"),
      tools.grid(["byte", "0", "4", "8", "12", "16", "20", "24", "28"], lying,
        "Lines of shared memory; " + says.textContent, "3rem")])
  ]));

  // -- the descriptor
  var found = {address: address, bank: bank, waves: tile.waves};
  var part = tile[side], step = 32 / item;
  if (part.bits) {
    var m = Math.floor(row / part.rows), n = Math.floor(k / step);
    var offset = part.down[m] + part.along[n];
    var bits = BigInt("0x" + part.bits) + BigInt(offset / 16);
    var hex = bits.toString(16).padStart(16, "0");
    found.bits = hex;
    shown.append(make("p", {"class": "live-head"}, "The descriptor of the instruction that reads it"),
      make("p", {}, ["Rows " + m * part.rows + " to " + ((m + 1) * part.rows - 1) + ", k " + n * step +
        " to " + ((n + 1) * step - 1) + ": ", make("code", {}, "0x" + hex),
      ". The tile begins at byte " + grouped(data.start) + "; the instructions along K begin " +
        part.along.map(grouped).join(", ") + " bytes behind it" + (part.down.length > 1
        ? ", those of the next rows " + part.down.map(grouped).join(", ") : "") + "."]),
      tools.table(["bits", "field", "holds", "which says"], data.fields[reader].map(function (one) {
        var stands = Number(bits >> BigInt(one[0]) & (1n << BigInt(one[1])) - 1n);
        var bytes = one[1] === 14 ? " = " + grouped(stands * 16) + " B / 16" : "";
        var text = {"start address": "where this instruction begins to read",
          "leading byte offset": data.texts[part.says[0]],
          "stride byte offset": data.texts[part.says[1]], "constant": "always 1",
          "base offset": "the tile begins on a multiple of 1,024 bytes",
          "leading offset's mode": "a distance, not an address",
          "swizzle": data.modes[of[3]]}[one[2]];
        return [one[1] === 1 ? String(one[0]) : one[0] + one[1] - 1 + "–" + one[0], one[2],
          grouped(stands) + bytes, text];
      })),
      make("p", {}, ["CUTLASS: ", make("code", {}, data.texts[tile.name])]));
  } else {
    var lanes = data.addressed[side + " " + of[2]], matrices = [];
    var firstPiece = Math.floor(line / 16) * 16, pieceChunk = Math.floor(chunk / 2) * 2;
    for (i = 0; i < 4; i++) {
      list = [8 * i + "–" + (8 * i + 7)];
      for (j = 0; j < 8; j++) {
        var lane = lanes[8 * i + j], l = firstPiece + lane[0], c = pieceChunk + lane[1];
        if (l === line && c === chunk) { found.names = 8 * i + j; }
        list.push({text: String(place(l, c)), kind: l === line && c === chunk ? "own" :
          together(l, c) ? "with" : ""});
      }
      matrices.push(list);
    }
    shown.append(make("p", {"class": "live-head"}, "The addresses that the lanes give to ldmatrix.x4" +
      (along ? "" : ".trans")),
      make("p", {}, "Lane " + found.names + " names the chunk with the element. " + (side === "A" ?
        "The four registers are A of one mma." : "The four registers are B of two mma, 8 columns "
        + "each.")),
      make("div", {"class": "live-picture" + conflict}, tools.grid(
        ["lane", "+0", "+1", "+2", "+3", "+4", "+5", "+6", "+7"], matrices,
        "Addresses by lane; lane " + found.names + " names the chunk with the element", "3rem")));
  }

  // -- registers, and the copy
  var list2 = make("ul", {}), fragment = reader !== "tcgen05" && !(reader === "wgmma" && side === "B")
    ? data.fragments[side + " " + item] : null;
  if (fragment) {
    var packed = 4 / item, r = row % 16, kk = k % step, where = null;
    fragment[0].forEach(function (each, register) {
      each.forEach(function (at16, lane) {
        var from = fragment[1][register][lane];
        if (at16 === r && from <= kk && kk < from + packed) { where = [lane, register, kk - from]; }
      });
    });
    found.holder = where;
    list2.append(make("li", {}, (reader === "wgmma" ? "If A comes from registers: warp " +
      Math.floor(row % 64 / 16) + " of the warpgroup, lane " : "Then it lies in lane ") + where[0] +
      ", register " + where[1] + (packed > 1 ? ", element " + where[2] + " of " + packed : "") +
      "."));
  } else {
    list2.append(make("li", {}, "No lane holds it: the instruction reads " + side +
      " from shared memory."));
  }
  var copies = tile.box ? chunks / tile.wide : 0, mode = data.maps[of[3]];
  list2.append(make("li", {}, tile.box ? ["TMA brings the tile in " + tools.plural(copies, "copy")
    .replace("copys", "copies") + ": ", make("code", {}, "boxDim = {" + tile.box.join(", ") + "}"),
  ", ", make("code", {}, mode), "."] : "No tensor map writes padded rows: copy them with cp.async."));
  shown.append(list2);
  root.dataset.found = JSON.stringify(found);
}

root.addEventListener("input", update);
update();
