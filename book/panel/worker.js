// The worker of a panel: Pyodide, NumPy and the emulator, from the page's own server.
//
// It is asked {id, stem, request} and answers {id, answer} or {id, failed}; while it starts it tells
// {progress, said}, and {running} how far a reader's own kernel is, which has no stem. Files come from
// the browser's cache of this book where they are cached, and are used only if their digest is the
// one of the manifest.

/** @typedef {{file: string, bytes: number, unpacked: number, sha256: string}} Entry */
/** @typedef {{id: number, base: string, stem: string, request: string}} Message */

const CACHE = "gemm-live";
/** @type {Map<string, Promise<any>>} what was asked for once */
const once = new Map();

/**
 * @template T
 * @param {string} key
 * @param {() => Promise<T>} make
 * @returns {Promise<T>}
 */
function only(key, make) {
  if (!once.has(key)) {
    const made = make();
    made.catch(() => once.delete(key)); // another click may try again
    once.set(key, made);
  }
  return /** @type {Promise<T>} */ (once.get(key));
}

/** @param {number} progress @param {string} said */
function tell(progress, said) {
  postMessage({ progress, said });
}

/**
 * SHA-256 (FIPS 180-4); `crypto.subtle` is missing where a page comes over plain HTTP.
 * @param {Uint8Array} data
 */
function sha256(data) {
  const /** @type {number[]} */ k = [], /** @type {number[]} */ h = [];
  for (let candidate = 2; k.length < 64; candidate++) {
    let prime = true;
    for (let d = 2; d * d <= candidate; d++) { prime = prime && candidate % d !== 0; }
    if (prime) {
      if (h.length < 8) { h.push((Math.sqrt(candidate) % 1 * 2 ** 32) | 0); }
      k.push((Math.cbrt(candidate) % 1 * 2 ** 32) | 0);
    }
  }
  const length = data.length, padded = ((length + 8) >> 6 << 6) + 64;
  const tail = new Uint8Array(padded - (length >> 6 << 6));
  tail.set(data.subarray(length >> 6 << 6));
  tail[length & 63] = 0x80;
  const end = new DataView(tail.buffer);
  end.setUint32(tail.length - 8, Math.floor(length / 2 ** 29));
  end.setUint32(tail.length - 4, (length << 3) >>> 0);
  const body = new DataView(data.buffer, data.byteOffset, length);
  const w = new Int32Array(64);
  for (let at = 0; at < padded; at += 64) {
    const inside = at + 64 <= length;
    for (let i = 0; i < 16; i++) {
      w[i] = inside ? body.getInt32(at + 4 * i) : end.getInt32(at - (length >> 6 << 6) + 4 * i);
    }
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15], y = w[i - 2];
      const s0 = (x >>> 7 | x << 25) ^ (x >>> 18 | x << 14) ^ x >>> 3;
      const s1 = (y >>> 17 | y << 15) ^ (y >>> 19 | y << 13) ^ y >>> 10;
      w[i] = w[i - 16] + s0 + w[i - 7] + s1 | 0;
    }
    let [a, b, c, d, e, f, g, j] = h;
    for (let i = 0; i < 64; i++) {
      const s1 = (e >>> 6 | e << 26) ^ (e >>> 11 | e << 21) ^ (e >>> 25 | e << 7);
      const t1 = j + s1 + (e & f ^ ~e & g) + k[i] + w[i] | 0;
      const s0 = (a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10);
      const t2 = s0 + (a & b ^ a & c ^ b & c) | 0;
      j = g; g = f; f = e; e = d + t1 | 0; d = c; c = b; b = a; a = t1 + t2 | 0;
    }
    [a, b, c, d, e, f, g, j].forEach((value, i) => { h[i] = h[i] + value | 0; });
  }
  return h.map((value) => (value >>> 0).toString(16).padStart(8, "0")).join("");
}

/** The book's cache; none where a browser keeps nothing for this page. */
async function cache() {
  try {
    return "caches" in self ? await caches.open(CACHE) : null;
  } catch {
    return null; // the reader's settings forbid it
  }
}

/** @param {string} base @returns {Promise<Record<string, Entry>>} */
async function manifest(base) {
  const address = base + "manifest.json", cached = await cache();
  let answer;
  try {
    answer = await fetch(address, { cache: "no-cache" });
  } catch (error) {
    answer = cached && await cached.match(address); // offline
    if (!answer) { throw error; }
    return answer.json();
  }
  if (!answer.ok) {
    throw new Error(`${address}: the server answers ${answer.status}; reload the page`);
  }
  if (cached) {
    await cached.put(address, answer.clone());
    const found = await answer.clone().json();
    const wanted = new Set(Object.values(found).map((e) => keyOf(base, /** @type {Entry} */ (e))));
    for (const request of await cached.keys()) {
      if (request.url !== address && request.url.startsWith(base) && !wanted.has(request.url)) {
        await cached.delete(request);
      }
    }
  }
  return answer.json();
}

/** @param {string} base @param {Entry} entry */
function keyOf(base, entry) {
  return `${base}${entry.file}?${entry.sha256.slice(0, 16)}`;
}

/**
 * The bytes of a file as it is stored, checked.
 * @param {string} base @param {Entry} entry @param {(bytes: number) => void} count
 */
async function stored(base, entry, count) {
  const key = keyOf(base, entry), cached = await cache();
  let answer = cached && await cached.match(key);
  const fresh = !answer;
  if (!answer) { answer = await fetch(key); }
  if (!answer.ok || !answer.body) {
    throw new Error(`${entry.file}: the server answers ${answer.status}; reload the page`);
  }
  const reader = answer.body.getReader(), data = new Uint8Array(entry.bytes);
  let at = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) { break; }
    if (at + value.length <= data.length) { data.set(value, at); }
    at += value.length;
    count(value.length);
  }
  if (at < entry.bytes) { throw new Error(`${entry.file}: the download was cut off; try again`); }
  if (at > entry.bytes || sha256(data) !== entry.sha256) {
    if (cached) { await cached.delete(key); }
    throw new Error(`${entry.file} is not the file that this page was built with; reload the page`);
  }
  if (cached && fresh) { await cached.put(key, new Response(data)); }
  return data;
}

/** @param {Uint8Array} data @param {string} file */
async function unpacked(data, file) {
  if (!file.endsWith(".gzip")) { return data; }
  const stream = new Blob([data]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// What answers for a chapter's kernels, and for a reader's own, which wants less of the library.
const SESSION = "from lib.panel.bundle import loads\nfrom lib.panel.session import Session\n" +
  "lambda text: Session(loads(text)).ask";
const TRIAL = "from lib.panel.trial import Trial\nlambda tell: Trial(tell).ask";

/** @param {string} base @param {string} stem */
async function start(base, stem) {
  const files = await manifest(base);
  const names = Object.keys(files).filter((name) => !name.endsWith(".json") || name.includes("lock"));
  const total = names.reduce((sum, name) => sum + files[name].bytes, 0);
  let loaded = 0, told = 0;
  const size = `${(total / 1e6).toFixed(1)} MB`;
  tell(0, `Loading ${size}`);
  /** @type {Record<string, Uint8Array>} */
  const found = {};
  await Promise.all(names.map(async (name) => {
    const data = await stored(base, files[name], (bytes) => {
      loaded += bytes;
      if (loaded - told > total / 50) { // a page that hears of each packet has no time for more
        told = loaded;
        tell(0.6 * loaded / total, `Loading ${size}`);
      }
    });
    found[name] = await unpacked(data, files[name].file);
  }));
  tell(0.62, "Starting Python");
  // Pyodide fetches its files by their names; they are here already.
  const outside = self.fetch.bind(self);
  self.fetch = (request, options) => {
    const name = String(request instanceof Request ? request.url : request).split("/").pop() || "";
    if (!(name in found)) { return outside(request, options); }
    const type = name.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
    return Promise.resolve(new Response(found[name], { headers: { "Content-Type": type } }));
  };
  /** @param {string} name */
  const load = async (name) => {
    const address = URL.createObjectURL(new Blob([found[name]], { type: "text/javascript" }));
    try {
      return await import(address);
    } finally {
      URL.revokeObjectURL(address);
    }
  };
  await load("pyodide.asm.js");
  const { loadPyodide } = await load("pyodide.mjs");
  const python = await loadPyodide({
    indexURL: base, lockFileURL: base + "pyodide-lock.json", stdLibURL: base + "python_stdlib.zip",
  });
  tell(0.75, "Loading NumPy");
  await python.loadPackage("numpy", { messageCallback: () => {} });
  tell(0.85, "Loading the emulator");
  python.unpackArchive(found["lib.zip"], "zip");
  python.runPython(`import sys; sys.path.insert(0, '/home/pyodide')\n${stem ? SESSION : TRIAL}`);
  self.fetch = outside;
  tell(1, "The emulator is ready");
  return { files, python };
}

/** @param {Message} message */
async function answer({ base, stem, request }) {
  const { files, python } = await only("start", () => start(base, stem));
  const ask = await only(stem, async () => {
    if (!stem) {
      return python.runPython(TRIAL)((/** @type {string} */ running) => postMessage({ running }));
    }
    const entry = files[`${stem}.json`];
    const data = await unpacked(await stored(base, entry, () => {}), entry.file);
    return python.runPython(SESSION)(new TextDecoder().decode(data));
  });
  return request ? ask(request) : "null";
}

addEventListener("message", async (event) => {
  const { id } = event.data;
  try {
    postMessage({ id, answer: await answer(event.data) });
  } catch (error) {
    const text = (error instanceof Error ? error.message : String(error)).trim();
    const last = text.split("\n").pop();
    postMessage({ id, failed: text.startsWith("Traceback")
      ? `The emulator failed on this, which is a fault of its own: ${last}` : last });
  }
});
