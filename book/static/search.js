// Ranks the sections of the book (`sections.js`, by book/search.py) for the words of a query, by BM25
// over a heading, its page's title, prose and words of code, and shows the best: each link leads to
// the section, with the sentence of it that has the words together.
(function () {
  "use strict";

  var SHOWN = 24, OF_A_PAGE = 3;
  var K1 = 1.2, B = 0.6; // as usual: how soon more of a word counts no more; how much length does
  var WEIGHTS = {heading: 5, page: 2.5, text: 1, words: 0.25};
  var LONG = 240, BEFORE = 120; // characters of a quotation, and of those at most before the words
  var stemmer = new Stemmer(), stems = new Map(), common = new Set(stopwords);

  function stem(word) {
    // Both spellings are one: "uninitialized", "color".
    var british = word.replace(/([iy])z(e[sdr]?|ing|ations?)$/, "$1s$2").replace("olor", "olour");
    if (!stems.has(word)) { stems.set(word, stemmer.stemWord(british)); }
    return stems.get(word);
  }

  function words(text) {
    return text.toLowerCase().match(/[\p{L}\p{N}_]+(?:-[\p{L}\p{N}_]+)*/gu) || [];
  }

  // A word that is joined by hyphens or underscores is one, and so are its longer parts.
  function parts(word) {
    return /[-_]/.test(word) ? word.split(/[-_]+/).filter(function (one) { return one.length > 1; }) : [];
  }

  function terms(text) {
    return words(text).flatMap(function (word) { return [word].concat(parts(word)); })
      .filter(function (word) { return !common.has(word); }).map(stem);
  }

  function indexed(book) {
    var all = [], of = new Map(), lengths = {heading: 0, page: 0, text: 0, words: 0};
    Object.entries(book.pages).forEach(function (page) {
      var first = page[1].sections[0].title;
      page[1].sections.forEach(function (section, i) {
        var fields = {heading: section.title, page: i ? first : "", text: section.text, words: section.words};
        var one = {page: page[0], address: page[1].address + (section.id ? "#" + section.id : ""),
                   first: first, title: i ? section.title : "", text: section.text,
                   prior: book.priors[page[0]] || 1, counts: {}, length: {}};
        Object.keys(fields).forEach(function (field) {
          var found = terms(fields[field]);
          one.length[field] = found.length;
          lengths[field] += found.length;
          found.forEach(function (term) {
            var counts = one.counts[term] = Object.hasOwn(one.counts, term) ? one.counts[term] : {};
            counts[field] = (counts[field] || 0) + 1;
          });
        });
        Object.keys(one.counts).forEach(function (term) { of.set(term, (of.get(term) || 0) + 1); });
        all.push(one);
      });
    });
    Object.keys(lengths).forEach(function (field) { lengths[field] /= all.length; });
    var index = {all: all, of: of, lengths: lengths, meant: book.meant};
    index.taught = Object.entries(book.taught).map(function (pair) {
      return {term: pair[0], page: pair[1], stems: asked(index, pair[0]).stems};
    });
    return index;
  }

  // What a query looks for: its words, as the book says them.
  function asked(index, query) {
    var text = " " + words(query).join(" ") + " ";
    Object.entries(index.meant).forEach(function (pair) {
      text = text.replace(new RegExp(" (?:" + pair[0] + ") ", "g"), " " + pair[1] + " ");
    });
    var all = words(text), told = all.filter(function (word) { return !common.has(word); });
    var found = new Set();
    (told.length ? told : all).forEach(function (word) {
      var whole = stem(word);
      if (index.of.has(whole)) { found.add(whole); return; }
      var known = parts(word).map(stem).filter(function (one) { return index.of.has(one); });
      if (!known.length && whole.length > 4) { // the nearest that begins alike
        known = Array.from(index.of.keys()).filter(function (one) { return one.startsWith(whole); })
          .sort(function (a, b) { return index.of.get(b) - index.of.get(a); }).slice(0, 1);
      }
      known.forEach(function (one) { found.add(one); });
    });
    return {stems: Array.from(found), text: text.trim()};
  }

  function score(index, section, query, rare) {
    var total = 0, had = 0;
    query.stems.forEach(function (term) {
      var counts = Object.hasOwn(section.counts, term) ? section.counts[term] : null;
      if (!counts) { return; }
      var weighed = Object.keys(counts).reduce(function (sum, field) {
        var length = 1 - B + B * section.length[field] / index.lengths[field];
        return sum + WEIGHTS[field] * counts[field] / length;
      }, 0);
      total += rare[term] * weighed / (K1 + weighed);
      had += rare[term];
    });
    if (!total) { return 0; }
    var whole = query.stems.reduce(function (sum, term) { return sum + rare[term]; }, 0);
    return total * Math.pow(had / whole, 2) * section.prior;
  }

  // The pages that teach what is asked for, each with the share of the words that is its term's.
  function teachers(index, query) {
    var found = {}, said = query.stems;
    function apart(text) { return " " + text.replace(/[-_]/g, " ") + " "; }
    index.taught.forEach(function (one) {
      var all = one.stems.length && one.stems.every(function (stem) { return said.includes(stem); });
      // A term with a hyphen is asked for with a blank, too.
      if (!all && !(one.term.includes("-") && apart(query.text).includes(apart(one.term)))) { return; }
      var exact = [query.text, query.text.replace(/s$/, "")].includes(one.term) ? 20 : 0;
      found[one.page] = Math.max(found[one.page] || 0, one.stems.length / said.length + exact);
    });
    return found;
  }

  function ranked(index, text) {
    var query = asked(index, text), rare = {}, teaching = teachers(index, query), many = {};
    query.stems.forEach(function (term) {
      var n = index.of.get(term);
      rare[term] = Math.log(1 + (index.all.length - n + 0.5) / (n + 0.5));
    });
    var found = index.all.map(function (section) {
      var points = score(index, section, query, rare);
      var near = points && query.stems.length > 1 ? densest(section.text, query.stems)[1] : 0;
      points *= 1 + 0.5 * (near === query.stems.length);
      return {section: section, score: points * (1 + (teaching[section.page] || 0))};
    }).filter(function (one) { return one.score > 0; });
    found.sort(function (a, b) { return b.score - a.score; });
    return {stems: query.stems, found: found.filter(function (one) {
      many[one.section.page] = (many[one.section.page] || 0) + 1;
      return many[one.section.page] <= OF_A_PAGE;
    })};
  }

  // Where words of a text have one of these stems, each with which.
  function places(text, wanted) {
    var found = [];
    for (var hit of text.matchAll(/[\p{L}\p{N}_]+(?:-[\p{L}\p{N}_]+)*/gu)) {
      var word = hit[0].toLowerCase();
      [word].concat(parts(word)).some(function (one) {
        var is = wanted.includes(stem(one));
        if (is) { found.push([hit.index, stem(one)]); }
        return is;
      });
    }
    return found;
  }

  // The place behind which most different ones of the words stand within a quotation, and how many.
  function densest(text, wanted) {
    var best = 0, most = 0, all = places(text, wanted);
    all.forEach(function (place, i) {
      var near = new Set();
      for (var j = i; j < all.length && all[j][0] < place[0] + LONG - BEFORE; j += 1) {
        near.add(all[j][1]);
      }
      if (near.size > most) { most = near.size; best = place[0]; }
    });
    return [best, most];
  }

  function quoted(text, wanted) {
    var at = densest(text, wanted)[0], from = Math.max(at - BEFORE, 0);
    // At the beginning of a sentence, or else of a word.
    var lead = text.slice(from, at), ends = Array.from(lead.matchAll(/[.?!:] (?=\S)/g));
    if (ends.length) { from += ends[ends.length - 1].index + 2; }
    else if (from) { from += lead.indexOf(" ") + 1; }
    var to = from + LONG >= text.length ? text.length : text.lastIndexOf(" ", from + LONG);
    return (from ? "… " : "") + text.slice(from, to) + (to < text.length ? " …" : "");
  }

  function element(name, text) {
    var made = document.createElement(name);
    made.textContent = text || "";
    return made;
  }

  function show(box, answer) {
    var list = element("ul"), shown = answer.found.slice(0, SHOWN);
    list.className = "search";
    box.append(element("h2", "Search results"), element("p", shown.length
      ? "The best " + shown.length + " of " + answer.found.length + " sections, the best first."
      : "Nothing in the book has these words."), list);
    box.querySelector("p").className = "search-summary";
    shown.forEach(function (one) {
      var item = element("li"), link = element("a", one.section.first), section = one.section;
      link.href = document.documentElement.dataset.content_root + section.address;
      if (section.title) { link.append(" › " + section.title); }
      item.append(link, element("p", quoted(section.text, answer.stems)));
      item.lastChild.className = "context";
      list.append(item);
    });
  }

  var index = indexed(window.bookSections);
  window.bookSearch = function (query) {
    var answer = ranked(index, query);
    return answer.found.map(function (one) {
      return {page: one.section.page, address: one.section.address, score: one.score,
              quoted: quoted(one.section.text, answer.stems), stems: answer.stems};
    });
  };
  var query = new URLSearchParams(location.search).get("q") || "";
  document.querySelectorAll('input[name="q"]').forEach(function (box) { box.value = query; });
  if (query.trim()) { show(document.getElementById("search-results"), ranked(index, query)); }
})();
