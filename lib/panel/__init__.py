"""What the browser's worker runs: the emulator on a kernel of the book, asked from a page.

`bundle` is what a page carries of a chapter's kernels. `session` answers: it reads a `request`,
runs it to a `result`, and `render` writes that as HTML, in the worker as when the book is
built. `book.panel` compiles the bundles and places the panels.
"""
