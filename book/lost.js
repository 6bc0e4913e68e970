// The page for lost readers names all that it loads and links to by the path that the book is
// published at, since it is shown in any folder. Where the book lies under another path, this finds
// it among the folders above the address that was asked for, and puts the names right.
(function (published) {
  "use strict";
  var style = getComputedStyle(document.documentElement);
  if (style.getPropertyValue("--pst-color-primary")) { return; } // it is where it says

  var folders = location.pathname.split("/").slice(0, -1);

  function move(root) {
    ["href", "src", "action"].forEach(function (attribute) {
      document.querySelectorAll("[" + attribute + '^="' + published + '"]').forEach(function (tag) {
        var target = root + tag.getAttribute(attribute).slice(published.length);
        if (tag.localName !== "script") {
          tag.setAttribute(attribute, target);
          return;
        }
        var again = document.createElement("script"); // one that failed is never tried again
        again.async = false; // in their order
        again.src = target;
        tag.replaceWith(again);
      });
    });
  }

  function look() {
    if (!folders.length) { return; }
    var root = folders.join("/") + "/";
    folders.pop();
    var probe = new Image();
    probe.onload = function () { move(root); };
    probe.onerror = look;
    probe.src = root + "_static/favicon.svg";
  }

  look();
})("PUBLISHED");
