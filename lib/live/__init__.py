"""What the browser's worker runs: the emulator on a kernel of the book, asked from a page.

`family` is what a page carries of a chapter's kernels, `desk` answers requests, `svg` draws and
`page` writes the answers as HTML, in the worker as when the book is built. `pack` makes families;
it alone compiles, and stays behind when the others are packed for the browser.
"""
