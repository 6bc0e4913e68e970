// What the search holds to be a better answer: the page that teaches the term (`book.taught`, put in
// the place of TAUGHT), then the page that is about the words, by its title. The glossary and single
// mentions follow. (Sphinx puts this into the search's own script, in place of its table of weights;
// apart from `score` they are its own.)
var Scorer = {
  taught: TAUGHT,
  score: function (result) {
    var query = new URLSearchParams(window.location.search).get("q") || "";
    var words = query.toLowerCase().trim();
    var page = Scorer.taught[words] || Scorer.taught[words.replace(/s$/, "")];
    if (page === result[0]) { return result[4] + 2000; }
    var title = result[1].split(" > ")[0].toLowerCase();
    return words && title.includes(words) ? result[4] + 1000 : result[4];
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2
};
