// Keeps the pages of this book that were open since a panel ran, and what they load, for a reader
// without a connection. What the server has comes first; the runtime has a cache of its own.
const PAGES = "gemm-pages";

/** @type {any} */
const worker = self;

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (/** @type {any} */ event) => {
  event.waitUntil(worker.clients.claim());
});

// What a page had loaded before it had this worker.
worker.addEventListener("message", (/** @type {any} */ event) => {
  event.waitUntil(caches.open(PAGES).then((kept) => Promise.all(event.data.map(
    (/** @type {string} */ address) => kept.add(address).catch(() => {})))));
});

worker.addEventListener("fetch", (/** @type {any} */ event) => {
  const { request } = event;
  const ours = request.url.startsWith(worker.registration.scope);
  if (request.method !== "GET" || !ours || /\/_static\/live\/.*(\?|manifest)/.test(request.url)) {
    return;
  }
  event.respondWith((async () => {
    const kept = await caches.open(PAGES);
    try {
      const answer = await fetch(request);
      if (answer.ok) { await kept.put(request, answer.clone()); }
      return answer;
    } catch (error) {
      const found = await kept.match(request, { ignoreSearch: true });
      if (found) { return found; }
      throw error;
    }
  })());
});
