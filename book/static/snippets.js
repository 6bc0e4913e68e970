// What the search quotes of a page: the sentence that has the words together, not the first place
// that has the last of them, and prose before code. Takes the place of Sphinx's own function.
(function () {
  "use strict";

  var LONG = 240, BEFORE = 120; // characters of a quotation, and of those at most before the words
  var NOT_SAID = ".headerlink, script, style, svg, form, summary, .cell_input, .highlight, .live";

  function textOf(root, left) {
    var copy = root.cloneNode(true);
    copy.querySelectorAll(left).forEach(function (one) { one.remove(); });
    return copy.textContent.replace(/\s+/g, " ").trim();
  }

  // Where words begin with one of these, each with which: the words' stems, as the index has them.
  function places(text, stems) {
    var found = [];
    stems.forEach(function (stem) {
      var word = new RegExp("(?<![\\p{L}\\p{N}])" + stem.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "giu");
      for (var hit of text.matchAll(word)) { found.push([hit.index, stem]); }
    });
    return found.sort(function (a, b) { return a[0] - b[0]; });
  }

  // The place behind which most different ones of the words stand within a quotation.
  function densest(text, stems) {
    var best = -1, most = 0, all = places(text, stems);
    all.forEach(function (place, i) {
      var near = new Set();
      for (var j = i; j < all.length && all[j][0] < place[0] + LONG - BEFORE; j += 1) {
        near.add(all[j][1]);
      }
      if (near.size > most) { most = near.size; best = place[0]; }
    });
    return [best, most];
  }

  function quoted(text, at) {
    var from = Math.max(at - BEFORE, 0);
    // At the beginning of a sentence, or else of a word.
    var lead = text.slice(from, at), ends = Array.from(lead.matchAll(/[.?!:] (?=\S)/g));
    if (ends.length) { from += ends[ends.length - 1].index + 2; }
    else if (from) { from += lead.indexOf(" ") + 1; }
    var to = from + LONG >= text.length ? text.length : text.lastIndexOf(" ", from + LONG);
    return (from ? "… " : "") + text.slice(from, to) + (to < text.length ? " …" : "");
  }

  Search.makeSearchSummary = function (page, keywords, anchor) {
    var whole = new DOMParser().parseFromString(page, "text/html");
    var main = whole.querySelector("article") || whole.querySelector("[role=main]");
    if (!main) { return null; }
    var root = anchor && main.querySelector(anchor) || main;
    var asked = (new URLSearchParams(location.search).get("q") || "").trim();
    var stems = Array.from(keywords), best = "", at = -1, most = 0;
    // Prose, then all; of the section, then of the page.
    [[root, NOT_SAID], [main, NOT_SAID], [main, ".headerlink, script, style"]].some(function (one) {
      var text = textOf(one[0], one[1]), as = asked ? places(text, [asked]) : [];
      var found = as.length ? [as[0][0], stems.length] : densest(text, stems);
      if (found[1] > most) { most = found[1]; at = found[0]; best = text; }
      return most >= stems.length;
    });
    var summary = document.createElement("p");
    summary.classList.add("context");
    summary.textContent = quoted(best || textOf(main, NOT_SAID), Math.max(at, 0));
    return summary;
  };
})();
