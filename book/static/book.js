// Names the controls of the explorers for people who don't see their labels, and lets the keyboard
// reach what scrolls, and nothing else of its kind.
(function () {
  "use strict";

  function labelControls(root) {
    // A widget with no tooltip is given the word "null" for one.
    root.querySelectorAll(".jupyter-widgets [title=null], .widget-label[title=null]").forEach(
      function (element) { element.removeAttribute("title"); }
    );
    root.querySelectorAll(".widget-inline-hbox, .widget-inline-vbox").forEach(function (box) {
      var label = box.querySelector(".widget-label");
      var name = label ? label.textContent.trim() : "";
      if (!name) { return; }
      box.querySelectorAll(".noUi-handle, select, input, .widget-readout, [role=group]").forEach(
        function (control) {
          if (control.getAttribute("aria-label") === name) { return; }
          control.setAttribute("aria-label", name);
        }
      );
    });
    // What a slider stands at: its words, where the library would have the number of a position.
    root.querySelectorAll(".widget-inline-hbox").forEach(function (box) {
      var handle = box.querySelector(".noUi-handle");
      var readout = box.querySelector(".widget-readout");
      if (handle && readout && handle.getAttribute("aria-valuetext") !== readout.textContent) {
        handle.setAttribute("aria-valuetext", readout.textContent);
      }
    });
    root.querySelectorAll("noscript[data-explorer]").forEach(function (still) {
      var cell = still.closest(".cell_output");
      var box = cell && cell.querySelector(".jupyter-widgets");
      if (box && !box.hasAttribute("aria-label")) {
        box.setAttribute("role", "group");
        box.setAttribute("aria-label", still.dataset.explorer);
      }
    });
    root.querySelectorAll(".widget-toggle-buttons").forEach(function (group) {
      var label = group.querySelector(".widget-label");
      group.setAttribute("role", "group");
      if (label && label.textContent.trim()) {
        group.setAttribute("aria-label", label.textContent.trim());
      }
      group.querySelectorAll("button").forEach(function (button) {
        button.setAttribute("aria-pressed", String(button.classList.contains("mod-active")));
      });
    });
  }

  // What may scroll sideways: figures, maths, tables, listings, outputs.
  var SCROLLERS = "figure.figure-scroll, div.math, .pst-scrollable-table-container, " +
    "article .highlight pre, article .cell_output .output, article .cell_output .text_html";

  function reachScrollers() {
    document.querySelectorAll(SCROLLERS).forEach(function (box) {
      if (box.scrollWidth > box.clientWidth + 1) {
        box.tabIndex = 0;
      } else {
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

  function watch() {
    var queued = false;
    function update() {
      queued = false;
      labelControls(document);
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
    // What scrolls in a column changes with the column: the window's event comes before that.
    var column = document.querySelector("article");
    if (column && window.ResizeObserver) { new ResizeObserver(queue).observe(column); }
    queue();
    unfoldForPrint();
  }

  if (document.readyState === "loading") {
    document.addEventListener("DOMContentLoaded", watch);
  } else {
    watch();
  }
})();
