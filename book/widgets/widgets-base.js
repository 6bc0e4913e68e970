// Ours: tells require.js where these files lie, so that the fonts of the widgets' icons are found too.
var require = { baseUrl: document.currentScript.src.replace(/\/[^/]*$/, "") };
