// Keeps the pages of this book that were open since a panel ran, what they load, and what their panels
// need to run, for a reader without a connection. What the server has comes first; the runtime has a
// cache of its own, which gets a chapter's kernels as the chapter is read.
const PAGES = "gemm-book", FORMER = "gemm-pages", LIVE = "gemm-live";
// What the panel's worker caches itself: its manifest, and files under the digest of their bytes.
const RUNTIME = /\/_static\/live\/(manifest\.json|[^?]*\?[0-9a-f]{16})$/;

/** @type {any} */
const worker = self;

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (/** @type {any} */ event) => {
  event.waitUntil(Promise.all([worker.clients.claim(), caches.delete(FORMER)]));
});

/** @param {string} address */
function cacheable(address) {
  return address.startsWith(worker.registration.scope) && !RUNTIME.test(address);
}

/**
 * One copy per file, whatever stands behind its "?", such as the digest that Sphinx adds: the server
 * has one file, too.
 * @param {string} address
 */
function keyOf(address) {
  return address.replace(/[?#].*/, "");
}

/**
 * Keep the kernels of the chapter at an address where the panel's worker looks for them.
 * @param {string} address
 */
async function keepKernels(address) {
  const stem = (/\/chapters\/(\w+)\.html$/.exec(keyOf(address)) || [])[1];
  if (!stem) { return; }
  try {
    const live = worker.registration.scope + "_static/live/";
    const entry = (await (await fetch(live + "manifest.json")).json())[stem + ".json"];
    if (!entry) { return; } // a page without a panel
    const cached = await caches.open(LIVE), key = `${live}${entry.file}?${entry.sha256.slice(0, 16)}`;
    if (!await cached.match(key)) { await cached.add(key); }
  } catch { /* no connection, or no room */ }
}

/** A page in place of one that was never open here. */
async function unread() {
  const cached = await caches.open(PAGES);
  const kept = await Promise.all((await cached.keys())
    .filter((/** @type {Request} */ request) => request.url.endsWith(".html"))
    .map(async (/** @type {Request} */ request) => {
      const text = await (await cached.match(request))?.text();
      return `<li><a href="${request.url}">${(/<title>([^<]*)/.exec(text || "") || ["", request.url])[1]}</a>`;
    }));
  return new Response(`<!DOCTYPE html><html lang="en"><meta charset="utf-8">
    <meta name="viewport" content="width=device-width"><title>Not kept on this device</title>
    <style>:root{color-scheme:light dark}body{font:1.1rem/1.6 system-ui,sans-serif;margin:3rem auto;
    max-width:40rem;padding:0 1rem}</style><main><h1>This page is not kept on this device</h1>
    <p>There is no connection, and a page is kept when it is opened with one. ${kept.length
    ? `These are here, and their panels run:</p><ul>${kept.sort().join("")}</ul>` : "</p>"}</main>`,
  { status: 503, headers: { "Content-Type": "text/html; charset=utf-8" } });
}

// What a page had loaded before it had this worker.
worker.addEventListener("message", (/** @type {any} */ event) => {
  const addresses = event.data.filter(cacheable);
  event.waitUntil(caches.open(PAGES).then((cached) => Promise.all(addresses.map(
    async (/** @type {string} */ address) => {
      try {
        const answer = await fetch(address);
        if (answer.ok) { await cached.put(keyOf(address), answer); }
      } catch { /* no connection, or no room: then this page needs its server */ }
    }))));
});

worker.addEventListener("fetch", (/** @type {any} */ event) => {
  const { request } = event;
  if (request.method !== "GET" || !cacheable(request.url)) { return; }
  event.respondWith((async () => {
    const cached = await caches.open(PAGES), key = keyOf(request.url);
    let answer;
    try {
      answer = await fetch(request);
    } catch (error) {
      const found = await cached.match(key);
      if (found) { return found; }
      if (request.mode === "navigate") { return unread(); }
      throw error;
    }
    if (answer.ok) {
      // Where there is no room for the copy, the page still gets its answer.
      event.waitUntil(cached.put(key, answer.clone()).catch(() => {}));
      if (request.mode === "navigate") { event.waitUntil(keepKernels(request.url)); }
    }
    return answer;
  })());
});
