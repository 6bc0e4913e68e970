// What the search holds to be a better answer: the page that is about the words, by its title. The
// glossary and single mentions follow. (Sphinx puts this into the search's own script, in place of
// its table of weights; apart from `score` they are its own.)
var Scorer = {
  score: function (result) {
    var query = new URLSearchParams(window.location.search).get("q") || "";
    var words = query.toLowerCase().trim();
    var page = result[1].split(" > ")[0].toLowerCase();
    return words && page.includes(words) ? result[4] + 1000 : result[4];
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
