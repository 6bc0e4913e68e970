// Ours: tells require.js that the widgets' modules, and the fonts of their icons, lie beside this file.
var require = {
  baseUrl: document.currentScript.src.replace(/\/[^/]*$/, ""),
  paths: { "@jupyter-widgets": ".", "@jupyter-widgets/html-manager/dist": "." }
};
