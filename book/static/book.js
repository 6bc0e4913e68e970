// Lets the keyboard reach what scrolls, and nothing else of its kind, and unfolds
// answers for print.
(function () {
  "use strict";

  // What may scroll sideways: figures, maths, tables, listings, outputs.
  var SCROLLERS = "figure.figure-scroll, div.math, .pst-scrollable-table-container, " +
    "article .highlight pre, article .cell_output .output, article .cell_output .text_html";

  function scrolls(box) {
    return box.scrollWidth > box.clientWidth + 1 || (box.scrollHeight > box.clientHeight + 1 &&
      /auto|scroll/.test(getComputedStyle(box).overflowY));
  }

  // All is measured before anything is changed, and nothing that is folded: each change between two
  // measurements, and each look into a fold, would lay the page out anew.
  function reachScrollers() {
    var boxes = Array.from(document.querySelectorAll(SCROLLERS)).filter(function (box) {
      return !box.closest("details:not([open])");
    });
    var reached = boxes.map(scrolls);
    boxes.forEach(function (box, i) {
      if (reached[i] && box.tabIndex !== 0) {
        box.tabIndex = 0;
      } else if (!reached[i] && box.hasAttribute("tabindex")) {
        box.removeAttribute("tabindex");
      }
    });
  }

  // Answers are open on paper, and as the reader left them afterwards.
  function unfoldForPrint() {
    var opened = [];
    window.addEventListener("beforeprint", function () {
      opened = Array.from(document.querySelectorAll("article details:not([open], .hide)"));
      opened.forEach(function (answer) { answer.open = true; });
    });
    window.addEventListener("afterprint", function () {
      opened.forEach(function (answer) { answer.open = false; });
    });
  }

  // A menu closes when something else is clicked, or with Escape, which leads back to its button.
  function closeMenus(event) {
    document.querySelectorAll("details.dropdown[open]").forEach(function (menu) {
      if (event.key === "Escape") {
        menu.open = false;
        menu.querySelector("summary").focus();
      } else if (!event.key && !menu.contains(event.target)) {
        menu.open = false;
      }
    });
  }

  function watch() {
    var queued = false;
    function update() {
      queued = false;
      reachScrollers();
    }
    function queue() {
      if (!queued) {
        queued = true;
        window.requestAnimationFrame(update);
      }
    }
    new MutationObserver(queue).observe(document.body, {
      attributes: true, attributeFilter: ["class"], childList: true, subtree: true
    });
    window.addEventListener("resize", queue);
    document.addEventListener("toggle", queue, true); // what was folded comes into sight
    // What scrolls in a column changes with the column: the window's event comes before that.
    var column = document.querySelector("article");
    if (column && window.ResizeObserver) { new ResizeObserver(queue).observe(column); }
    queue();
    unfoldForPrint();
    document.addEventListener("click", closeMenus);
    document.addEventListener("keydown", closeMenus);
    document.querySelectorAll("[data-print]").forEach(function (button) {
      button.addEventListener("click", function () { window.print(); });
    });
  }

  if (document.readyState === "loading") {
    document.addEventListener("DOMContentLoaded", watch);
  } else {
    watch();
  }
})();
