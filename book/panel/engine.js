// The panels "Run it here" once one of them is asked: the worker, its answers, the editor, the stepper.
// `panel.js` loads it.
(function () {
  "use strict";

  /** @typedef {{html: string, said: string, verdict: string, [more: string]: any}} Answer */

  const LIMIT = 60; // s that a run may take
  // What a tick of that clock may count, s. A page that sleeps, a tab that the browser has frozen or
  // a machine that was shut, wakes to one long tick, in which nothing ran.
  const TICK = 2;
  const NEAR = 4; // lines of PTX between which only line information stands, as of one place
  const VISIT = "gemm-live-used"; // this visit has started the emulator: the next chapter begins early
  /** What `panel.js` lends. */
  const shared = /** @type {any} */ (window).gemmLive;
  let serial = 0;

  /** The one worker of a page; all its panels share it. */
  const engine = {
    /** @type {Promise<Worker> | null} */
    worker: null,
    /** @type {Map<number, {resolve: (a: Answer) => void, reject: (e: Error) => void}>} */
    waiting: new Map(),
    /** @type {Set<(progress: number | null, said: string) => void>} */
    listeners: new Set(),
    ready: false,
    /** @type {string | null} */
    source: null, // so that it starts again without the server

    /** @param {string} base */
    async start(base) {
      if (engine.source === null) {
        const answer = await fetch(base + "worker.js");
        if (!answer.ok) {
          throw new Error(`worker.js: the server answers ${answer.status}; reload the page`);
        }
        engine.source = await answer.text();
      }
      const address = URL.createObjectURL(new Blob([engine.source], { type: "text/javascript" }));
      const worker = new Worker(address, { type: "module" });
      worker.addEventListener("message", ({ data }) => {
        if (data.progress !== undefined) {
          engine.ready = data.progress === 1;
          engine.listeners.forEach((tell) => tell(data.progress, data.said));
          return;
        }
        if (data.running !== undefined) {
          engine.listeners.forEach((tell) => tell(null, data.running));
          return;
        }
        const who = engine.waiting.get(data.id);
        engine.waiting.delete(data.id);
        if (!who) { return; }
        if (data.failed !== undefined) {
          who.reject(new Error(explained(data.failed)));
        } else {
          who.resolve(JSON.parse(data.answer));
        }
      });
      worker.addEventListener("error", (event) => {
        event.preventDefault();
        engine.end(explained(event.message || "the worker did not start"));
      });
      return worker;
    },

    /**
     * @param {string} base @param {string} stem @param {object | null} request
     * @returns {Promise<Answer>}
     */
    async ask(base, stem, request) {
      if (!engine.worker) {
        engine.worker = engine.start(base);
        engine.worker.catch(() => { engine.worker = null; });
      }
      const worker = await engine.worker;
      const id = ++serial;
      return new Promise((resolve, reject) => {
        engine.waiting.set(id, { resolve, reject });
        worker.postMessage({ id, base, stem, request: request && JSON.stringify(request) });
      });
    },

    /** @param {string} why */
    end(why) {
      const worker = engine.worker;
      engine.worker = null;
      engine.ready = false;
      if (worker) { worker.then((one) => one.terminate(), () => {}); }
      engine.waiting.forEach(({ reject }) => reject(new Error(why)));
      engine.waiting.clear();
    },
  };

  /** Keep this page, and what it has loaded, for a reader without a connection. @param {string} base */
  async function keep(base) {
    if (!("serviceWorker" in navigator)) { return; } // or the page came over plain HTTP
    const root = new URL("../../", base).href;
    try {
      await navigator.serviceWorker.register(root + "offline.js");
      const { active } = await navigator.serviceWorker.ready;
      await shared.loadFonts();
      const loaded = performance.getEntriesByType("resource").map((entry) => entry.name);
      const pages = [location.href.split("#")[0], ...loaded];
      active?.postMessage(pages);
    } catch { /* the reader's settings forbid it: then this page needs its server */ }
  }

  /** @param {string} text what a worker failed with */
  function explained(text) {
    if (/out of memory|memoryerror|memory\.grow|(allocation|allocate).*(failed|memory)/i.test(text)) {
      engine.end("stopped");
      return "The memory of this page is used up: take a smaller shape, and run again.";
    }
    if (/Failed to fetch|NetworkError|Load failed/i.test(text)) {
      return "The server can't be reached: look at the connection, and try again.";
    }
    if (/module.*not supported|import.*module script/i.test(text)) {
      return "This browser has no modules in workers: open the page in a current one.";
    }
    return text;
  }

  /** Why this page can't run anything, in one line; empty if it can. */
  function lacking() {
    if (location.protocol === "file:") {
      return "This page was opened from a file, from which a browser loads no program. " +
        "Serve the folder (make serve, or python -m http.server) and open it from there.";
    }
    const lacks = [
      ["WebAssembly", typeof WebAssembly === "object"],
      ["workers", typeof Worker === "function"],
      ["module scripts", "noModule" in HTMLScriptElement.prototype],
      ["DecompressionStream", typeof DecompressionStream === "function"],
    ].filter((one) => !one[1]).map((one) => one[0]);
    return lacks.length
      ? `This browser has no ${lacks.join(", no ")}: open the page in a current one.` : "";
  }

  /** The questions of one panel, one at a time, and what is said of them. @param {HTMLElement} box */
  function conversation(box) {
    const base = new URL(box.dataset.base || "", location.href).href;
    const stem = box.dataset.stem || "";
    /** @param {string} name @returns {any} */
    const part = (name) => box.querySelector(`[data-part="${name}"]`);
    const run = part("run"), stop = part("stop"), status = part("status"), bar = part("bar");
    let busy = false;
    let /** @type {number | undefined} */ clock;

    /** @param {boolean} now */
    function working(now) {
      busy = now;
      box.toggleAttribute("data-busy", now);
      box.querySelectorAll("[data-ask]").forEach((one) => {
        one.setAttribute("aria-disabled", String(now));
      });
      stop.disabled = !now;
      bar.hidden = !now;
      clearInterval(clock);
    }

    /** @param {number | null} progress @param {string} said */
    function progressed(progress, said) {
      if (!busy) { return; }
      if (progress !== null) { bar.value = progress; }
      if (status.textContent !== said) { status.textContent = said; }
      if (progress === 1) {
        status.textContent = "Running";
        bar.removeAttribute("value");
        limit();
      }
    }
    engine.listeners.add(progressed);

    function limit() {
      clearInterval(clock);
      const most = Number(box.dataset.limit) || LIMIT;
      let ran = 0, last = performance.now();
      clock = setInterval(() => {
        const now = performance.now();
        ran += Math.min((now - last) / 1000, TICK);
        last = now;
        if (ran >= most) { engine.end(`Stopped after ${most} seconds: take a smaller shape.`); }
      }, 250);
    }

    /**
     * Ask, and show what comes; one question at a time.
     * @param {object} request @param {(answer: Answer) => void} show
     */
    async function ask(request, show) {
      if (busy) { return; }
      const lacks = lacking();
      if (lacks) {
        status.textContent = lacks;
        return;
      }
      working(true);
      bar.value = 0;
      status.textContent = engine.ready ? "Running" : "Loading";
      if (engine.ready) {
        bar.removeAttribute("value");
        limit();
      }
      const began = performance.now();
      try {
        const answer = await engine.ask(base, stem, request);
        try { sessionStorage.setItem(VISIT, "1"); } catch { /* the reader keeps nothing */ }
        if (run.textContent !== "Run") {
          run.textContent = "Run";
          keep(base);
        }
        tell(answer, (performance.now() - began) / 1000);
        show(answer);
      } catch (error) {
        status.textContent = /** @type {Error} */ (error).message;
      }
      working(false);
    }

    /**
     * Say what came. A verdict stands below for who sees it, and so is only heard here.
     * @param {Answer} answer @param {number} seconds
     */
    function tell(answer, seconds) {
      const said = document.createElement("span");
      said.textContent = answer.said;
      const below = answer.html.includes("live-verdict");
      said.classList.toggle("live-heard", below);
      status.replaceChildren(said, below ? ` Done in ${seconds.toFixed(1)} s:`
        : ` (${seconds.toFixed(1)} s)`);
    }

    stop.addEventListener("click", () => {
      engine.end("Stopped. The next run starts the emulator again, from the copies kept here.");
    });
    return { ask, part, busy: () => busy };
  }

  /**
   * A warp, step by step.
   * @param {(name: string) => any} part
   * @param {(request: object, show: (answer: Answer) => void) => void} ask
   * @param {(answer: Answer) => void} show
   * @param {() => object} wanted
   */
  function stepper(part, ask, show, wanted) {
    let at = 0, count = 0, /** @type {number[]} */ memory = [], /** @type {number[]} */ starts = [];
    const slider = part("at");
    /** @param {Answer} answer */
    function moment(answer) {
      if (answer.verdict !== "step") { return show(answer); }
      ({ at, count, memory, starts } = /** @type {any} */ (answer));
      slider.max = String(count - 1);
      slider.value = String(at);
      slider.setAttribute("aria-valuetext", answer.said);
      part("of").textContent = `${at + 1} of ${count}`;
      part("moment").innerHTML = answer.html;
      part("steps").hidden = false;
    }
    /** @param {number} to */
    function step(to) {
      const next = Math.max(0, Math.min(count - 1, to));
      ask({ ...wanted(), do: "step", at: next, registers: part("registers").value }, moment);
    }
    /** @param {object} [more] */
    function record(more) {
      const place = Object.fromEntries(["block", "warp", "first"].map(
        (name) => [name, Number(part(name).value)]));
      ask({ do: "record", at_block: place.block, from: place.first, ...place, ...wanted(), ...more },
        moment);
    }
    part("microscope").addEventListener("click", () => record());
    part("back").addEventListener("click", () => step(at - 1));
    part("forward").addEventListener("click", () => step(at + 1));
    // To the next memory access, or to where the warp comes to another line of the kernel.
    for (const [name, places] of Object.entries({ access: () => memory, line: () => starts })) {
      part(name).addEventListener("click", () => {
        const next = places().find((one) => one > at);
        if (next !== undefined) { step(next); }
      });
    }
    slider.addEventListener("change", () => step(Number(slider.value)));
    part("registers").addEventListener("change", () => { if (count) { step(at); } });
    return record;
  }

  /** @param {Element} root */
  function panel(root) {
    const /** @type {HTMLElement} */ box = /** @type {any} */ (root);
    const { ask: question, part, busy } = conversation(box);
    const form = part("form"), shown = part("answer"), pictures = part("pictures");
    const status = part("status"), fields = form.elements;

    /** What the controls say. */
    function wanted() {
      const /** @type {Record<string, any>} */ found = {};
      new FormData(form).forEach((value, name) => { found[name] = value; });
      ["M", "N", "K", "alpha", "beta"].forEach((name) => {
        const text = String(found[name]).trim();
        found[name] = text === "" || isNaN(Number(text)) ? text : Number(text);
      });
      found.races = "races" in found;
      found.mistake = found.mistake === "" ? null : Number(found.mistake);
      found.ptx = edited && written() !== original ? written() : null;
      return found;
    }

    /** What stood here before a question was refused: the last answer, or the recorded run. */
    const last = { html: shown.innerHTML, verdict: box.dataset.verdict };
    function restore() {
      shown.innerHTML = last.html;
      if (last.verdict === undefined) { delete box.dataset.verdict; } else { box.dataset.verdict = last.verdict; }
    }

    /** @param {object} request @param {(answer: Answer) => void} then */
    function ask(request, then) {
      return question(request, (/** @type {Answer} */ answer) => {
        if (box.dataset.verdict === "refused") { restore(); }
        then(answer);
      });
    }

    /** @param {Answer} answer */
    function show(answer) {
      shown.innerHTML = answer.html;
      box.dataset.verdict = answer.verdict;
      if (answer.verdict !== "refused") { Object.assign(last, answer); }
      if (answer.mistake !== undefined) { seed(fields.mistake.value, answer.mistake); }
      if (answer.accesses) { choose(answer.accesses, answer.first); }
    }

    /** @param {{label: string, html: string}[]} accesses @param {number} first */
    function choose(accesses, first) {
      pictures.replaceChildren();
      if (!accesses.length) { return; }
      const name = document.createElement("label"), list = document.createElement("select");
      const picture = document.createElement("div");
      name.textContent = "Access of one warp ";
      accesses.forEach(({ label }) => list.add(new Option(label)));
      list.selectedIndex = first;
      const draw = () => { picture.innerHTML = accesses[list.selectedIndex].html; };
      list.addEventListener("change", draw);
      name.append(list);
      pictures.append(name, picture);
      draw();
    }

    form.addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      ask({ do: "run", ...wanted() }, show);
    });

    // A task sets the controls, and runs the kernel before its change and as they are then.
    box.querySelectorAll("[data-task]").forEach((one) => {
      const button = /** @type {HTMLElement} */ (one);
      const guess = /** @type {HTMLInputElement} */ (button.parentElement?.querySelector("[data-guess]"));
      button.addEventListener("click", () => {
        if (busy()) { return; }
        const { variant, ...others } = JSON.parse(button.dataset.set || "{}");
        const kept = edited && fields.variant.value === variant; // the reader's own PTX of it
        form.reset();
        fields.variant.value = variant;
        if (!kept) { fields.variant.dispatchEvent(new Event("change")); }
        for (const name of Object.keys(others)) { fields[name].value = String(others[name]); }
        if (kept) { seed("", ""); }
        ask({ do: "task", task: Number(button.dataset.task), ...wanted() }, (answer) => {
          show(answer);
          if (answer.numbers && guess.value.trim() !== "") {
            const said = document.createElement("p");
            said.textContent = `Your guess: ${shared.compared(guess.value, answer.numbers[1], "the run has " +
              answer.numbers[1].toLocaleString("en"))}`;
            shown.prepend(said);
          }
          shown.scrollIntoView({ block: "nearest" });
        });
      });
    });
    // A mistake is chosen at the line of the source that it changes.
    const seeds = part("seeds");
    /** @param {string} number which of the variant's @param {string} said it in a line */
    function seed(number, said) {
      fields.mistake.value = number;
      part("mistake").textContent = said || "none";
      part("cure").hidden = number === "";
      seeds.querySelectorAll("[data-mistake]").forEach((/** @type {HTMLElement} */ one) => {
        one.setAttribute("aria-pressed", String(one.dataset.mistake === number));
      });
    }
    /** Open or close a part. @param {string} name @param {string} button @param {boolean} now */
    function open(name, button, now) {
      part(name).hidden = !now;
      part(button).setAttribute("aria-expanded", String(now));
    }
    part("choose").addEventListener("click", () => {
      if (!seeds.hidden) { return open("seeds", "choose", false); }
      ask({ do: "source", ...wanted(), ptx: null }, (answer) => {
        if (answer.verdict !== "source") { return show(answer); }
        seeds.innerHTML = answer.html;
        open("seeds", "choose", true);
        const lines = seeds.querySelector("ol"), first = lines.children[answer.first - 1];
        lines.scrollTop = first.offsetTop - lines.clientHeight / 3;
        first.querySelector("button").focus({ preventScroll: true });
      });
    });
    seeds.addEventListener("click", (/** @type {Event} */ event) => {
      const chosen = /** @type {Element} */ (event.target).closest("[data-mistake]");
      if (!(chosen instanceof HTMLElement)) { return; }
      if (chosen.getAttribute("aria-pressed") === "true") { return seed("", ""); }
      close();
      const row = Array.from(seeds.querySelectorAll("li")).indexOf(chosen.closest("li")) + 1;
      seed(chosen.dataset.mistake || "", `${chosen.lastElementChild?.textContent}, line ${row}`);
    });
    part("cure").addEventListener("click", () => {
      seed("", "");
      part("choose").focus();
    });
    fields.variant.addEventListener("change", () => {
      close();
      open("seeds", "choose", false);
      seed("", "");
    });

    // The PTX beside the CUDA. The editor has some of its lines: at first the inner loop.
    let edited = false, original = "";
    let /** @type {string[]} */ above = [], /** @type {string[]} */ below = [];
    let /** @type {Record<string, number>} */ lines = {}; // the CUDA line, by line of the original
    const text = part("ptx"), cuda = part("cuda");
    /** The whole text as the reader has it. */
    function written() {
      return [...above, text.value, ...below].join("\n");
    }
    /** Close the editor, which brings the compiler's text back. */
    function close() {
      edited = false;
      open("editor", "edit", false);
    }
    /** @param {number} first @param {number} last line that the editor has, of the whole text */
    function view(first, last) {
      const every = written().split("\n");
      above = every.slice(0, first - 1);
      below = every.slice(last);
      text.value = every.slice(first - 1, last).join("\n");
      part("all").hidden = !above.length && !below.length;
      part("all").textContent = `Show all ${every.length.toLocaleString("en")} lines`;
      text.setSelectionRange(0, 0);
      text.scrollTop = 0;
      caret();
    }
    part("edit").addEventListener("click", () => {
      if (!part("editor").hidden) { return close(); }
      seed("", "");
      ask({ do: "ptx", ...wanted(), ptx: null }, (answer) => {
        if (answer.verdict !== "listed") { return show(answer); }
        original = text.value = answer.ptx;
        above = below = [];
        lines = answer.lines;
        const compiled = new Set(Object.values(lines));
        cuda.replaceChildren(...answer.cuda.split("\n").map(
          (/** @type {string} */ row, /** @type {number} */ i) => {
            const line = document.createElement("li");
            const code = document.createElement(compiled.has(i + 1) ? "button" : "code");
            if (code instanceof HTMLButtonElement) {
              code.type = "button";
              code.tabIndex = -1;
            }
            code.textContent = row || " ";
            line.append(code);
            return line;
          }));
        part("file").textContent = `${answer.file}: choose a line, and its PTX is shown`;
        edited = true;
        open("editor", "edit", true);
        view(answer.first, answer.last);
        text.focus();
      });
    });
    part("all").addEventListener("click", () => {
      const row = above.length;
      view(1, written().split("\n").length);
      text.scrollTop = text.scrollHeight * row / text.value.split("\n").length;
      text.focus();
    });
    /** How far an edit has moved the lines behind it, and the first line that it moved. */
    function moved() {
      const old = original.split("\n"), now = written().split("\n");
      const first = old.findIndex((line, i) => line !== now[i]);
      return { by: now.length - old.length, from: first < 0 ? old.length : first };
    }
    function caret() {
      const row = above.length + text.value.slice(0, text.selectionStart).split("\n").length;
      const { by, from } = moved();
      const line = lines[row > from + 1 ? row - by : row];
      const every = above.length + text.value.split("\n").length + below.length;
      part("place").textContent = `PTX, lines ${(above.length + 1).toLocaleString("en")} to ` +
        `${(every - below.length).toLocaleString("en")} of ${every.toLocaleString("en")}; line ` +
        row.toLocaleString("en") + (line ? `, of CUDA line ${line}` : "");
      cuda.querySelectorAll(".live-now").forEach((/** @type {Element} */ one) => {
        one.classList.remove("live-now");
      });
      const now = line ? cuda.children[line - 1] : cuda.querySelector("button")?.parentElement;
      if (line) { now.classList.add("live-now"); }
      reach(now?.querySelector("button"));
      if (now && document.activeElement !== now.firstElementChild) {
        cuda.scrollTop = now.offsetTop - cuda.clientHeight / 2;
      }
    }
    ["keyup", "click", "input"].forEach((kind) => text.addEventListener(kind, caret));
    // One line of the CUDA is in the order of the Tab key; the arrows lead to the others.
    /** @param {HTMLElement | null | undefined} button */
    function reach(button) {
      if (!button) { return; }
      cuda.querySelectorAll("[tabindex='0']").forEach((/** @type {HTMLElement} */ one) => {
        one.tabIndex = -1;
      });
      button.tabIndex = 0;
    }
    cuda.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) { return; }
      event.preventDefault();
      const buttons = Array.from(cuda.querySelectorAll("button"));
      const next = buttons[buttons.indexOf(document.activeElement) + step];
      reach(next);
      next?.focus();
    });
    // A line of the CUDA: the PTX that the compiler made of it, one place after another.
    cuda.addEventListener("click", (/** @type {Event} */ event) => {
      const row = /** @type {Element} */ (event.target).closest("li");
      const number = Array.from(cuda.children).indexOf(row) + 1;
      /** @type {number[][]} */
      const places = [];
      for (const [at, line] of Object.entries(lines)) {
        if (line !== number) { continue; }
        const last = places[places.length - 1];
        if (last && Number(at) - last[1] <= NEAR) { last[1] = Number(at); } else {
          places.push([Number(at), Number(at)]);
        }
      }
      if (!places.length) { return; }
      const { by, from } = moved();
      const now = places.map((place) => place.map((at) => at > from ? at + by : at));
      const next = now.find(([first]) => first > above.length + 1) || now[0];
      const here = row?.classList.contains("live-now") ? next : now[0];
      view(here[0], here[1]);
      status.textContent = `PTX of CUDA line ${number}: place ${now.indexOf(here) + 1} of ` +
        `${now.length}` + (now.length > 1 ? "; choose the line again for the next" : "");
    });
    stepper(part, ask, show, wanted);
  }

  /** Start before anybody asks. @param {HTMLElement} box */
  shared.begin = (/** @type {HTMLElement} */ box) => {
    if (lacking()) { return; }
    const base = new URL(box.dataset.base || "", location.href).href;
    engine.ask(base, box.dataset.stem || "", null).catch(() => {});
  };

  document.querySelectorAll("[data-live]").forEach((one) => {
    if (one instanceof HTMLElement && one.dataset.live) {
      shared.own(one, { conversation, stepper });
    } else {
      panel(one);
    }
  });
})();
