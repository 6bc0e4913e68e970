// The page "Try your own kernel" before a click: the form, examples and links. What runs it is
// `engine.js`, which `panel.js` loads at the first click.
(function () {
  "use strict";

  /** @typedef {Record<string, any>} Request as `lib.panel.trial.DEFAULT` has it */

  const MAX_PACKED = 1 << 20, MAX_UNPACKED = 8 << 20; // as `lib.compiler.link` has them
  const MAX_FILE = 4_000_000; // bytes of a file that is dropped
  const WORD = /^(?:([A-Za-z_]\w*)=)?(\w+)(?:\[([^\]]*)\])?(?::(.*))?$/;
  const GUESS = "The launch is a first guess. Set the grid, the arrays' shapes and the numbers that your kernel is " +
    "launched with, and run it again: what is wrong below may be the guess.";
  const FIELDS = ["name", "type", "shape or box", "filling or value"];
  const shared = /** @type {any} */ (window).gemmLive;
  const box = /** @type {HTMLElement} */ (document.querySelector("[data-live=own]"));
  const base = new URL(box.dataset.base || "", location.href).href;
  /** @param {string} name @returns {any} */
  const part = (name) => box.querySelector(`[data-part="${name}"]`);
  const form = part("form"), fields = form.elements, status = part("status");
  const text = part("ptx"), cuda = part("cuda"), kernel = part("kernel"), rows = part("args");
  const /** @type {Record<string, any[]>} */ forms = {}; // what was read of each kernel
  let loaded = { ptx: "", merge: null, name: "" }, /** @type {Record<string, string>} */ sources = {};
  let report = "", /** @type {any} */ door = null;
  let guessed = false; // whether the launch is the form's, and nobody has changed it
  let compiled = ""; // what the PTX was made of, as `toCompile` has it

  /** @param {string} said */
  function say(said) { status.textContent = said; }

  // -- the form ---------------------------------------------------------------------------------

  /** @param {string} word an argument, such as A=float32[64,64]:uniform */
  function row(word) {
    const [, ...values] = word.match(WORD) || ["", "", word];
    const line = document.createElement("div");
    line.className = "own-argument";
    FIELDS.forEach((name, i) => {
      const field = document.createElement("input");
      field.value = values[i] || "";
      field.setAttribute("aria-label", `Argument ${rows.children.length + 1}: ${name}`);
      field.placeholder = i === 2 ? "a number" : "";
      if (i === 1) { field.setAttribute("list", "own-types"); }
      if (i === 3) { field.setAttribute("list", "own-fills"); }
      line.append(field);
    });
    rows.append(line);
  }

  /** The arguments as words. */
  function words() {
    return Array.from(rows.children, (line) => {
      const [name, type, shape, value] = Array.from(line.querySelectorAll("input"), (one) => one.value.trim());
      return `${name && name + "="}${type}${shape && `[${shape}]`}${value && ":" + value}`;
    });
  }

  /** @param {string} name */
  function sizes(name) {
    const typed = fields[name].value.trim();
    return typed && typed.split(/[,x×\s]+/).map(Number);
  }

  /** @param {Request} asked what an example, a link or a reading says */
  function fill(asked) {
    if (asked.ptx !== undefined) {
      text.value = asked.ptx;
      loaded = { ptx: asked.ptx, merge: asked.merge || null, name: asked.name || "" };
      sources = asked.sources || {};
      showSource();
      part("example").value = loaded.name;
      if (part("example").selectedIndex < 0) { part("example").value = ""; }
    }
    if (asked.kernel) {
      if (!Array.from(kernel.options).some((one) => one.value === asked.kernel)) {
        kernel.replaceChildren(new Option(asked.plain || asked.kernel, asked.kernel));
      }
      kernel.value = asked.kernel;
    }
    rows.replaceChildren();
    (asked.args || []).forEach(row);
    ["grid", "block", "cluster"].forEach((name) => { fields[name].value = (asked[name] || []).join(","); });
    fields.shared.value = String(asked.shared || 0);
    guessed = false;
    if (asked.ptx === undefined) { return; }
    fields.schedule.value = asked.schedule || "lowest";
    fields.landing.value = asked.landing || "early";
    fields.seed.value = String(asked.seed || 0);
    fields.strict.checked = Boolean(asked.strict);
    fields.expect.value = asked.expect || "";
    fields.expression.value = asked.template || "";
    machine();
  }

  /** Choose the architecture that the PTX is for. */
  function machine() {
    const named = text.value.match(/^\s*\.target\s+(\w+)/m)?.[1];
    const option = Array.from(fields.arch.options).find((one) => one.value === named);
    if (option) { option.selected = true; }
    compiled = toCompile();
  }

  /** What the compiler is asked for. */
  function toCompile() {
    return JSON.stringify({ source: cuda.value, arch: fields.arch.value, kernel: fields.expression.value });
  }

  function showSource() {
    const [name, source] = Object.entries(sources)[0] || ["", ""];
    cuda.value = source;
    part("source").hidden = !source && !door;
    part("file").textContent = `CUDA${name ? ", " + name : ""}`;
  }

  /** @returns {Request} */
  function wanted() {
    return {
      ptx: text.value, sources, kernel: kernel.value, args: words(), grid: sizes("grid"),
      block: sizes("block"), cluster: sizes("cluster") || null, shared: Number(fields.shared.value),
      schedule: fields.schedule.value, landing: fields.landing.value, seed: Number(fields.seed.value),
      strict: fields.strict.checked, expect: fields.expect.value, template: fields.expression.value,
      merge: text.value === loaded.ptx ? loaded.merge : null,
    };
  }

  /** @param {any[]} kernels what `lib.panel.form.kernels` says */
  function offer(kernels) {
    kernel.replaceChildren(...kernels.map((one) => new Option(one.plain, one.name)));
    kernels.forEach((one) => { forms[one.name] = one; });
    fill({ ...kernels[0], kernel: kernels[0].name });
    guessed = true;
  }
  kernel.addEventListener("change", () => {
    const read = forms[kernel.value];
    if (read) {
      fill({ ...read, kernel: kernel.value });
      guessed = true;
    }
  });
  form.addEventListener("input", (/** @type {Event} */ event) => {
    guessed = guessed && [text, cuda, fields.expect].includes(event.target);
  });

  /** Whether the form is of another text. */
  function unread() {
    return !rows.children.length || !kernel.value || !text.value.includes(kernel.value);
  }

  // -- texts that are pasted or dropped ---------------------------------------------------------

  /** @param {string} given */
  function take(given) {
    const source = /__global__|#include|@triton\.jit|@cuda\.jit/.test(given) && !given.includes(".entry");
    if (source && door && /__global__|#include/.test(given)) {
      fill({ ptx: "", sources: { "kernel.cu": given } });
      kernel.replaceChildren();
      compiled = "";
      say('"Run" compiles it and runs it with first values; then change them.');
      return;
    }
    if (text.value !== given) { text.value = given; }
    if (source) {
      part("how").open = true;
      say("This is source code. Compile it to PTX first: the commands are below.");
    } else if (unread()) {
      rows.replaceChildren();
      kernel.replaceChildren();
      sources = {};
      showSource();
      say('"Run" reads the parameters and runs with first values; then change them.');
    }
  }
  text.addEventListener("input", () => take(text.value));
  /** @param {File | undefined} file */
  async function open(file) {
    if (!file) { return; }
    if (file.size > MAX_FILE) { return say(`The file has more than ${MAX_FILE.toLocaleString("en")} bytes.`); }
    rows.replaceChildren();
    take(await file.text());
  }
  box.addEventListener("dragover", (event) => event.preventDefault());
  box.addEventListener("drop", (event) => {
    event.preventDefault();
    open(event.dataTransfer?.files[0]);
  });
  part("open").addEventListener("change", () => open(part("open").files[0]));

  // -- examples and links -----------------------------------------------------------------------

  /** @param {ReadableStream<any>} stream @param {number} most bytes */
  async function read(stream, most) {
    const reader = stream.getReader(), decoder = new TextDecoder();
    let found = "", bytes = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) { return found + decoder.decode(); }
      bytes += value.length;
      if (bytes > most) { throw new Error("it is too long"); }
      found += decoder.decode(value, { stream: true });
    }
  }

  /** @param {string} name */
  async function example(name) {
    try {
      const answer = await fetch(`${base}own/${name}.json.gzip`);
      if (!answer.ok || !answer.body) { throw new Error(`the server answers ${answer.status}`); }
      const unpacked = answer.body.pipeThrough(new DecompressionStream("gzip"));
      kernel.replaceChildren();
      fill(JSON.parse(await read(unpacked, MAX_UNPACKED)));
      say('The example is here: "Run" runs it.');
    } catch (error) {
      say(`The example ${name} can't be loaded: ${/** @type {Error} */ (error).message}.`);
    }
  }
  part("example").addEventListener("change", () => {
    if (part("example").value) { example(part("example").value); }
  });

  /** @param {Request} asked */
  async function address(asked) {
    const given = Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== null &&
      value !== "" && JSON.stringify(value) !== "[]" && JSON.stringify(value) !== "{}"));
    const stream = new Blob([JSON.stringify(given)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    let packed = "";
    bytes.forEach((one) => { packed += String.fromCharCode(one); });
    packed = btoa(packed).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
    if (packed.length > MAX_PACKED) { throw new Error("the PTX is too long for a link"); }
    return `${location.href.split("#")[0]}#k=${packed}`;
  }

  /** What the address holds, if it holds a kernel. */
  async function arrive() {
    const [key, value] = [location.hash.slice(1, 2 + location.hash.slice(1).indexOf("=")),
      location.hash.slice(2 + location.hash.slice(1).indexOf("="))];
    if (key === "example=" && /^\w+$/.test(value)) { return example(value); }
    if (key !== "k=") { return; }
    try {
      if (value.length > MAX_PACKED) { throw new Error("it is too long"); }
      const packed = atob(value.replace(/-/g, "+").replace(/_/g, "/"));
      const bytes = Uint8Array.from(packed, (one) => one.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
      kernel.replaceChildren();
      fill(JSON.parse(await read(stream, MAX_UNPACKED)));
      say('The link\'s kernel is here: look at it, then "Run" runs it in this page.');
    } catch (error) {
      say(`The link holds no kernel that can be read: ${/** @type {Error} */ (error).message}.`);
    }
  }
  addEventListener("hashchange", arrive);

  /** @param {string} given @param {string} said */
  async function copy(given, said) {
    const copied = part("copied");
    try {
      await navigator.clipboard.writeText(given);
      copied.hidden = true;
      say(said);
    } catch { // no clipboard, or the reader's settings forbid it
      copied.hidden = false;
      copied.value = given;
      copied.select();
      say("Copy it from the field below.");
    }
  }
  part("link").addEventListener("click", async () => {
    try {
      const to = await address(wanted());
      history.replaceState(null, "", to);
      copy(to, `A link to this kernel and its launch is copied: ${to.length.toLocaleString("en")} characters.`);
    } catch (error) { say(`There is no link: ${/** @type {Error} */ (error).message}.`); }
  });
  part("report").addEventListener("click", () => {
    if (!report) { return say("Run the kernel first: the report is of the last run."); }
    copy(report, "The report is copied, in Markdown.");
  });

  // -- the compiler, where the page's own server has one ----------------------------------------

  async function knock() {
    if (!["localhost", "127.0.0.1", "[::1]"].includes(location.hostname)) { return; }
    try {
      const answer = await fetch(new URL("../../compile", base));
      if (!answer.ok) { return; }
      door = await answer.json();
      fields.arch.replaceChildren(...door.archs.map((/** @type {string} */ one) => new Option(one, one)));
      machine();
      cuda.readOnly = false;
      part("compiler").hidden = false;
      showSource();
    } catch { /* a server of files alone */ }
  }
  /** Compile the CUDA; whether that gave PTX. */
  async function compile() {
    say("Compiling");
    try {
      const answer = await fetch(new URL("../../compile", base), {
        method: "POST", headers: { "Content-Type": "application/json", "X-Token": door.token },
        body: toCompile(),
      });
      const made = await answer.json();
      if (!made.ptx) {
        say(made.error || `The compiler's server answers ${answer.status}.`);
        return false;
      }
      const before = wanted();
      fill({ ...before, ptx: made.ptx, sources: { "kernel.cu": cuda.value }, template: made.template });
      offer(made.kernels);
      if (made.kernels.some((/** @type {any} */ one) => one.name === before.kernel)) { // what was typed stays
        const { args, grid, block, cluster, shared } = before;
        fill({ kernel: before.kernel, args, grid, block, cluster, shared });
      }
      say(`Compiled.${made.log ? " " + made.log : ""}`);
      return true;
    } catch (error) {
      say(`The compiler can't be asked: ${/** @type {Error} */ (error).message}.`);
      return false;
    }
  }
  part("compile").addEventListener("click", compile);

  // -- running ----------------------------------------------------------------------------------

  /** What `engine.js` lends once it is loaded. @param {HTMLElement} _ @param {any} lent */
  shared.own = (_, { conversation, stepper }) => {
    const { ask } = conversation(box);
    const shown = part("answer");
    /** @param {any} answer */
    function show(answer) {
      shown.innerHTML = answer.html;
      if (guessed && answer.verdict === "wrong") { shown.prepend(Object.assign(document.createElement("p"), { textContent: GUESS })); }
      const table = shown.querySelector(".try-scroll");
      const line = table?.querySelector(".live-now, [data-row]");
      if (line) { table.scrollTop = line.offsetTop - table.clientHeight / 3; }
      box.dataset.verdict = answer.verdict;
      report = answer.report || "";
    }
    const record = stepper(part, ask, show, wanted);
    async function readParameters() {
      await ask({ do: "read", ptx: text.value, sources }, (/** @type {any} */ answer) => {
        if (answer.verdict === "read") { offer(answer.kernels); } else { show(answer); }
      });
      return !unread();
    }
    part("read").addEventListener("click", readParameters);
    form.addEventListener("submit", async (/** @type {Event} */ event) => {
      event.preventDefault();
      if (door && cuda.value.trim() && toCompile() !== compiled && !await compile()) { return; }
      if (unread() && !await readParameters()) { return; }
      ask({ do: "run", ...wanted() }, show);
    });
    shown.addEventListener("click", async (/** @type {Event} */ event) => {
      const line = /** @type {Element} */ (event.target).closest("[data-row]");
      if (!(line instanceof HTMLElement)) { return; }
      await record({ row: Number(line.dataset.row) });
      part("steps").scrollIntoView({ block: "nearest" });
    });
  };

  box.querySelectorAll("[data-scripted]").forEach((one) => one.removeAttribute("hidden"));
  knock();
  if (location.hash) { arrive(); } else { fill(JSON.parse(part("given").textContent)); }
})();
