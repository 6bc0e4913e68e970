// Names the controls of the explorers for people who don't see their labels, and lets the keyboard
// reach figures that scroll, and no others.
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

  function reachScrollers() {
    document.querySelectorAll("figure.figure-scroll").forEach(function (figure) {
      if (figure.scrollWidth > figure.clientWidth + 1) {
        figure.tabIndex = 0;
      } else {
        figure.removeAttribute("tabindex");
      }
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
    queue();
  }

  if (document.readyState === "loading") {
    document.addEventListener("DOMContentLoaded", watch);
  } else {
    watch();
  }
})();
