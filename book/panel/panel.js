// The panels "Run it here" before a click, and the questions that ask for a number. The first click in a
// panel loads `engine.js`, which does the rest; until then a page carries no more than this.
(function () {
  "use strict";

  const VISIT = "gemm-live-used"; // this visit has started the emulator: the next chapter begins early
  const NO_NUMBER = "Type a number.";
  /** What `engine.js` shares with this script: it adds `begin`, which starts the emulator. */
  const /** @type {any} */ shared = { compared, loadFonts };
  /** @type {any} */ (window).gemmLive = shared;
  /** @type {Promise<void> | null} */
  let loading = null;
  let loaded = false;

  /**
   * Load each font that a style sheet names. An icon is a letter of one until a script has drawn
   * it, so the same page may ask for the font in one visit and not in another.
   */
  function loadFonts() {
    return Promise.allSettled(Array.from(document.fonts, (face) => face.load()));
  }

  /** The script that runs panels, once for a page. @param {string} base */
  function load(base) {
    loading ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = base + "engine.js";
      script.onload = () => { loaded = true; resolve(); };
      script.onerror = () => {
        loading = null; // another click may try again
        script.remove();
        reject(new Error("engine.js can't be loaded: look at the connection, or reload the page."));
      };
      document.head.append(script);
    });
    return loading;
  }

  /** @param {Element} root */
  function panel(root) {
    const box = /** @type {HTMLElement} */ (root);
    const base = new URL(box.dataset.base || "", location.href).href;
    const status = /** @type {HTMLElement} */ (box.querySelector("[data-part=status]"));
    box.querySelectorAll("[hidden][data-scripted]").forEach((one) => { one.removeAttribute("hidden"); });

    // The first click waits for the script that answers it.
    box.addEventListener("click", async (event) => {
      const asked = /** @type {Element} */ (event.target).closest("[data-ask]");
      if (loaded || !(asked instanceof HTMLElement)) { return; }
      event.preventDefault();
      event.stopPropagation();
      if (box.hasAttribute("data-busy")) { return; }
      box.toggleAttribute("data-busy", true);
      status.textContent = "Loading";
      try {
        await load(base);
        box.removeAttribute("data-busy");
        asked.click();
      } catch (error) {
        box.removeAttribute("data-busy");
        status.textContent = /** @type {Error} */ (error).message;
      }
    }, true);

    // Enter in a guess is a click on its button.
    box.addEventListener("keydown", (event) => {
      const guess = /** @type {Element} */ (event.target).closest("[data-guess]");
      if (!guess || event.key !== "Enter") { return; }
      event.preventDefault();
      guess.closest("li")?.querySelector("button")?.click();
    });

    // Who has used it in this visit will do so again: start when the panel comes into sight.
    let used = false;
    try { used = sessionStorage.getItem(VISIT) === "1"; } catch { /* not kept */ }
    if (used && "IntersectionObserver" in window) {
      new IntersectionObserver((seen, observer) => {
        if (seen.some((one) => one.isIntersecting)) {
          observer.disconnect();
          load(base).then(() => shared.begin(box), () => {});
        }
      }).observe(box);
    }
  }

  /** A question that a number answers. @param {Element} root */
  function question(root) {
    const form = /** @type {HTMLFormElement} */ (root);
    const said = /** @type {HTMLElement} */ (form.querySelector("output"));
    const decides = /** @type {HTMLElement} */ (form.querySelector(".live-decides"));
    const folded = form.nextElementSibling;
    form.hidden = false;
    // The panel that runs it again, with the variant that was asked for.
    decides.querySelector("a")?.addEventListener("click", (event) => {
      const link = /** @type {HTMLAnchorElement} */ (event.currentTarget);
      const list = document.querySelector(link.hash)?.closest("[data-live]")
        ?.querySelector("select[name=variant]");
      if (list instanceof HTMLSelectElement) {
        list.value = link.dataset.variant || list.value;
        list.dispatchEvent(new Event("change"));
      }
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      said.textContent = compared(
        String(new FormData(form).get("guess")), Number(form.dataset.truth), form.dataset.run || "");
      if (said.textContent === NO_NUMBER) { return; }
      decides.hidden = false;
      if (folded instanceof HTMLDetailsElement) { folded.open = true; }
    });
  }

  /**
   * How far off a guess is.
   * @param {string} typed @param {number} truth @param {string} run what the run has, in words
   */
  function compared(typed, truth, run) {
    const text = typed.replace(/[,\s]/g, ""), guess = Number(text);
    if (text === "" || isNaN(guess)) { return NO_NUMBER; }
    if (guess === truth) { return `Exactly: ${run}.`; }
    const times = guess * truth > 0
      ? `, a factor of ${Number(Math.max(guess / truth, truth / guess).toPrecision(2))}` : "";
    return `Off by ${Math.abs(guess - truth).toLocaleString("en")}${times}: ${run}.`;
  }

  // A page that is read behind the first copies as it loads.
  if (navigator.serviceWorker?.controller) { addEventListener("load", loadFonts); }
  document.querySelectorAll("[data-live]").forEach(panel);
  document.querySelectorAll("form[data-truth]").forEach(question);
})();
