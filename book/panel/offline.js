// Keeps the pages of this book that were open since a panel ran, and what they load, for a reader
// without a connection. What the server has comes first; the runtime has a cache of its own.
const PAGES = "gemm-book", FORMER = "gemm-pages";
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
      throw error;
    }
    if (answer.ok) {
      // Where there is no room for the copy, the page still gets its answer.
      event.waitUntil(cached.put(key, answer.clone()).catch(() => {}));
    }
    return answer;
  })());
});
