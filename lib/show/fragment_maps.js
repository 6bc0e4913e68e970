// Which lane and register hold an element: looked up in `lib.show.fragment_maps.choices`.
"use strict";
var make = tools.make, DOWN = 16, ACROSS = 8;
var names = Object.keys(data.maps);
var instruction = make("select", {"data-name": "instruction"}, names.map(function (name) {
  return make("option", {value: name}, name);
}));
instruction.value = data.first[0];
var matrix = make("select", {"data-name": "matrix"});
var fields = {};
["row", "column", "lane", "register"].forEach(function (name) { fields[name] = tools.number(name); });
fields.row.value = data.first[1];
fields.column.value = data.first[2];
var says = make("p", {"class": "live-says", "aria-live": "polite"});
var shown = make("div", {});
root.append(make("div", {"class": "live-numbers"},
  [tools.field("Instruction", instruction), tools.field("Matrix", matrix)]),
make("div", {"class": "live-numbers"}, [tools.field("Row", fields.row),
  tools.field("Column", fields.column), tools.field("Lane", fields.lane),
  tools.field("Register", fields.register)]), says, shown);

function fill() {
  var kept = matrix.value;
  matrix.replaceChildren.apply(matrix, data.maps[instruction.value].map(function (one) {
    return make("option", {value: one.matrix}, one.matrix);
  }));
  if (Array.from(matrix.options).some(function (one) { return one.value === kept; })) {
    matrix.value = kept;
  }
}

// By lane and register when one of these was changed, else by row and column.
function update(byLane) {
  var one = data.maps[instruction.value].find(function (each) {
    return each.matrix === matrix.value;
  });
  var many = one.row[0].length, down = one.down ? one.packed : 1, across = one.down ? 1 : one.packed;
  var holders = {}, register, lane;
  for (register = 0; register < many; register++) {
    for (lane = 0; lane < 32; lane++) {
      holders[(one.row[0][register] + one.row[1][lane]) + " " +
        (one.column[0][register] + one.column[1][lane])] = [lane, register];
    }
  }
  if (byLane) {
    lane = tools.value(fields.lane, 32);
    register = tools.value(fields.register, many);
    fields.row.value = one.row[0][register] + one.row[1][lane];
    fields.column.value = one.column[0][register] + one.column[1][lane];
  }
  var row = tools.value(fields.row, one.shape[0]), column = tools.value(fields.column, one.shape[1]);
  var top = row - row % down, left = column - column % across;
  var holder = holders[top + " " + left], part = one.down ? row - top : column - left;
  if (!byLane) {
    fields.lane.value = holder[0];
    fields.register.value = holder[1];
  }
  fields.lane.max = 31;
  fields.register.max = many - 1;
  says.textContent = "Row " + row + ", column " + column + ": lane " + holder[0] + ", register " +
    holder[1] + (one.packed > 1 ? ", element " + part + " of " + one.packed : "") + ". Lane " +
    holder[0] + " holds " + many * one.packed + " elements in " + tools.plural(many, "register") + ".";

  var wide = ACROSS * across, tall = Math.min(DOWN, one.shape[0] / down) * down;
  var first = row - row % tall, begin = column - column % wide;
  var heads = [""], rows = [], i, j, end = Math.min(begin + wide, one.shape[1]);
  for (j = begin; j < end; j += across) { heads.push(String(j)); }
  for (i = first; i < Math.min(first + tall, one.shape[0]); i += down) {
    var list = [String(i)];
    for (j = begin; j < end; j += across) {
      var here = holders[i + " " + j], own = here[0] === holder[0];
      list.push({text: own ? "r" + here[1] : String(here[0]),
        kind: own ? (here[1] === holder[1] ? "own" : "with") : "",
        pick: function (r, c) {
          return function () { fields.row.value = r; fields.column.value = c; update(); };
        }(i, j)});
    }
    rows.push(list);
  }
  var cellIs = one.packed === 1 ? "A cell is one element" : "A cell is one register, " + one.packed +
    " elements " + (one.down ? "of a column" : "of a row");
  var picture = make("div", {"class": "live-picture"}, [
    make("p", {}, cellIs + ", with the lane that holds it; those of lane " + holder[0] +
      " are filled, with the register. Of " + one.shape[0] + " rows and " + one.shape[1] +
      " columns, rows from " + first + " and columns from " + begin + " on."),
    tools.grid(heads, rows, "The matrix by lanes; " + says.textContent)]);
  var held = [];
  for (register = 0; register < Math.min(many, 8); register++) {
    held.push(["r" + register, "(" + (one.row[0][register] + one.row[1][holder[0]]) + ", " +
      (one.column[0][register] + one.column[1][holder[0]]) + ")" + (one.packed > 1 ? " and " +
      (one.packed - 1) + (one.down ? " below it" : " to its right") : "")]);
  }
  if (many > 8) { held.push(["r8 …", "further columns, in the same order"]); }
  shown.replaceChildren(make("div", {"class": "live-pictures"}, [picture,
    make("div", {}, [make("p", {"class": "live-head"}, "Registers of lane " + holder[0] + ", each " +
      one.kind), tools.table(["register", "row and column"], held)])]));
  if (one.note) { shown.append(make("p", {}, one.note)); }
  root.dataset.found = JSON.stringify({lane: holder[0], register: holder[1], part: part, row: row,
    column: column});
}

["input", "change"].forEach(function (kind) {
  root.addEventListener(kind, function (event) {
    if (event.target === instruction) { fill(); }
    update(event.target === fields.lane || event.target === fields.register);
  });
});
fill();
update();
