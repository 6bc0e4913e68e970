// What the scripts of live explorers share. It ends in a call of the function that follows it.
(function (draw) {
  "use strict";
  var root = document.currentScript.parentNode;
  var body = root.querySelector(".live-body");
  var data = JSON.parse(root.querySelector("script").textContent);
  var fieldsets = Array.from(body.querySelectorAll(".explorer-control"));

  // An element: its class or attributes, and what is in it.
  function make(tag, attributes, inside) {
    var made = document.createElement(tag);
    Object.keys(attributes || {}).forEach(function (name) {
      made.setAttribute(name, attributes[name]);
    });
    [].concat(inside === undefined ? [] : inside).forEach(function (one) { made.append(one); });
    return made;
  }

  // A labelled field of whole numbers, or of choices.
  function field(label, made) {
    return make("label", {}, [make("span", {}, label), made]);
  }

  function number(name) {
    return make("input", {type: "number", min: 0, step: 1, value: 0, autocomplete: "off",
      "data-name": name});
  }

  // What a number field says, brought into its range.
  function value(input, size) {
    input.max = size - 1;
    var found = Math.max(0, Math.min(size - 1, Math.floor(Number(input.value) || 0)));
    if (document.activeElement !== input || String(found) !== input.value && input.value !== "") {
      input.value = found;
    }
    return found;
  }

  // A grid of cells under a row of heads. `rows` are lists whose first item heads the row; others
  // are a text, or {text, kind, pick}: kind is "own" or "with", pick is called on a click.
  function grid(heads, rows, label, wide) {
    var made = make("div", {"class": "live-grid", role: "img", "aria-label": label});
    made.style.gridTemplateColumns = (wide || "2rem") + " repeat(" + (heads.length - 1) +
      ", minmax(0, 1fr))";
    heads.forEach(function (head) { made.append(make("span", {}, head)); });
    rows.forEach(function (row) {
      row.forEach(function (cell) {
        if (typeof cell === "string") { made.append(make("span", {}, cell)); return; }
        var name = "live-cell" + (cell.kind ? " live-" + cell.kind : "");
        if (!cell.pick) { name += " live-empty"; }
        var one = make("span", {"class": name}, cell.text);
        if (cell.row) { one.style.gridRow = "span " + cell.row; }
        if (cell.pick) { one.addEventListener("click", cell.pick); }
        made.append(one);
      });
    });
    return made;
  }

  function table(heads, rows) {
    return make("table", {}, [
      make("thead", {}, make("tr", {}, heads.map(function (one) {
        return make("th", {scope: "col"}, one);
      }))),
      make("tbody", {}, rows.map(function (row) {
        return make("tr", {}, row.map(function (one) { return make("td", {}, one); }));
      }))
    ]);
  }

  // The value of each group of buttons, in their order.
  function chosen() {
    return fieldsets.map(function (one, place) {
      return data.options[place][Number(one.querySelector("input:checked").value)];
    });
  }

  root.querySelector(".live-still").hidden = true;
  body.hidden = false;
  draw(body, data, {make: make, field: field, number: number, value: value, grid: grid,
    table: table, chosen: chosen,
    thousands: function (n) { return n.toLocaleString("en-GB"); },
    plural: function (n, word) { return n + " " + word + (n === 1 ? "" : "s"); }});
})
