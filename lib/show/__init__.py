"""What the book shows: a file a subject, its numbers first, its drawing behind them.

First stands what computes, then what draws what it is given, then what displays what a chapter
asks for by a version's record, code or traced run; what one page alone shows is named after it.
Diagrams are scenes of HTML and SVG (`lib.show.scene`), charts over axes Matplotlib's
(`lib.show.chart`). These parameters mean the same everywhere, and are described again only where
there is more to say.

Parameters
----------
version : Version
    The version that a page is about.
variant : str, optional
    Of that version; its fastest if none is named.
variants : str
    Of that version, a row, a column or a bar each; its fastest if none is named.
above : sequence of str
    Versions to show above, as ``stem`` or ``stem/variant``; where None may be given, that is the
    version before, of the same group.
size, sizes : int or sequence of int
    M = N = K.
gpus : sequence of str
    Keys of data sheets.
title : str, optional
    A figure's finding, in place of the one made from its numbers.
evidence : str
    The kind and the source of a figure's numbers, such as ``"emulated: sm_75 PTX"``
    (`lib.show.chart.finish`).
note : str
    A remark at a figure's lower left.
narrow : bool
    Whether a figure has its layout for phones, where names and numbers stand above and below what
    they stood beside.
"""
