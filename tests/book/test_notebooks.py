"""The normal form of a committed notebook."""

import json

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from book import notebooks, roles
from lib.__main__ import main


def executed(*outputs, source="x", **metadata):
    return new_code_cell(source, execution_count=7, outputs=list(outputs), metadata=metadata)


def shown(mime, **more):
    return new_output("display_data", data=mime, **more)


def normal(*cells, **metadata):
    text = nbformat.writes(new_notebook(cells=list(cells), metadata=metadata))
    return notebooks.parse(notebooks.normal_text(text))


def left_outputs(*outputs):
    return normal(executed(*outputs)).cells[0].outputs


def test_text_outputs_stay():
    outputs = [
        new_output("stream", name="stdout", text="four\n"),
        shown({"text/markdown": "| a |\n|---|\n| 1 |", "text/plain": "<Markdown>"}),
        shown({"text/html": "<table><tr><td>1</td></tr></table>", "text/plain": "table"}),
        new_output("execute_result", data={"text/plain": "42"}, execution_count=7),
    ]
    left = left_outputs(*outputs)
    assert [output.output_type for output in left] == [
        "stream", "display_data", "display_data", "execute_result"]
    assert left[1].data["text/markdown"].startswith("| a |")
    assert left[2].data == {"text/plain": "table"}  # a page's own form is made when it is built
    assert left[3].execution_count == 1


@pytest.mark.parametrize("output", [
    shown({"image/png": "aGk=", "text/plain": "<Figure>"}),
    shown({"image/svg+xml": "<svg/>"}),
    shown({"text/html": "<figure><svg role='img'></svg></figure>", "text/plain": "figure"}),
    shown({"text/html": "<div><IMG src='a.png'></div>"}),
    shown({"text/markdown": "![bars](data:image/png;base64,aGk=)"}),
    shown({"application/vnd.jupyter.widget-view+json": {"model_id": "a"}, "text/plain": "VBox()"}),
    shown({"application/javascript": "alert(1)"}),
    new_output("stream", name="stderr", text="100%|####| 3/3 [00:01<00:00]\n"),
])
def test_drawings_widgets_and_noise_go(output):
    assert left_outputs(output) == []


def test_pieces_of_one_stream_are_joined():
    pieces = [new_output("stream", name="stdout", text=text) for text in ("a\n", "b\n")]
    [output] = left_outputs(*pieces)
    assert output.text == "a\nb\n"


def test_addresses_of_objects_go():
    [output] = left_outputs(shown({"text/plain": "<thing at 0x7f5aa5c8a2a0>"}))
    assert output.data["text/plain"] == "<thing at 0x…>"


def test_counts_run_from_one_and_are_never_null():
    cells = [new_code_cell("a"), new_markdown_cell("b"), executed(source="c")]
    assert [cell.get("execution_count") for cell in normal(*cells).cells] == [1, None, 2]


def test_metadata_of_one_machine_goes_and_tags_stay():
    cell = executed(tags=["nbval-check-output"], execution={"iopub.execute_input": "2026"},
                    scrolled=True, mystnb={"image": {"alt": "Bars"}}, outputId="x")
    notebook = normal(cell, language_info={"name": "python", "version": "3.11.7"},
                      kernelspec={"name": "venv", "display_name": "my venv"}, colab={"name": "a"},
                      widgets={"application/vnd.jupyter.widget-state+json": {
                          "state": {}, "version_major": 2, "version_minor": 0}})
    assert notebook.metadata == {
        "kernelspec": notebooks.KERNELSPEC, "language_info": {"name": "python"}}
    assert notebook.cells[0].metadata == {
        "tags": ["nbval-check-output"], "mystnb": {"image": {"alt": "Bars"}}}


def test_what_a_page_folds_is_folded_in_jupyterlab_too():
    folded, open_ = normal(executed(tags=["hide-cell"]), executed(tags=["draws"])).cells
    assert folded.metadata.jupyter == {"source_hidden": True, "outputs_hidden": True}
    assert "jupyter" not in open_.metadata


def test_a_notebook_saved_by_colab_is_mended():
    document = json.loads(nbformat.writes(new_notebook(cells=[executed()])))
    # Colab drops `state`, and gives all cells ids of its own in the metadata.
    document["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"a1": {}}}
    document["nbformat_minor"] = 0
    del document["cells"][0]["id"]
    document["cells"][0]["metadata"]["id"] = "Xy_1"
    notebook = notebooks.parse(notebooks.normal_text(json.dumps(document)))
    nbformat.validate(notebook)
    assert "widgets" not in notebook.metadata
    assert notebook.cells[0].id == "cell-00"
    assert notebook.cells[0].metadata == {}


def test_two_cells_of_one_id_are_told_apart():
    document = new_notebook(cells=[new_code_cell("a", id="same"), new_code_cell("b")])
    document.cells[1].id = "same"
    first, second = notebooks.parse(notebooks.normal_text(json.dumps(document))).cells
    assert first.id == "same" and second.id != "same"


def test_normal_form_is_a_fixed_point():
    text = nbformat.writes(new_notebook(cells=[
        new_markdown_cell("# T\n"), executed(shown({"text/plain": "1", "image/png": "aGk="}))]))
    once = notebooks.normal_text(text)
    assert once != text
    assert notebooks.normal_text(once) == once


def test_an_error_is_refused():
    error = new_output("error", ename="NameError", evalue="no x", traceback=[])
    with pytest.raises(notebooks.NotebookError, match="ended in NameError: no x"):
        normal(executed(error))


@pytest.mark.parametrize(("text", "word"), [
    ("{", "no JSON"), ("[" * 100_000, "no JSON"), ("[" + "9" * 10_000 + "]", "no JSON"),
    ("[]", "no cells"), ('{"nbformat": 3, "cells": []}', "format 3"),
    ('{"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "song"}]}', "no valid notebook"),
])
def test_what_is_no_notebook_is_refused(text, word):
    with pytest.raises(notebooks.NotebookError, match=word):
        notebooks.normal_text(text)


def test_command_lists_writes_and_refuses(tmp_path, capsys):
    path = tmp_path / "a.ipynb"
    path.write_text(nbformat.writes(new_notebook(cells=[executed(shown({"image/png": "aGk="}))])))
    assert main(["notebooks", "--check", str(path)]) == 1
    assert "not normal" in capsys.readouterr().out
    assert main(["notebooks", "--write", str(path)]) == 0
    assert main(["notebooks", "--check", str(path)]) == 0
    path.write_text("{")
    assert main(["notebooks", "--write", str(path)]) == 2
    assert "no JSON" in capsys.readouterr().err
    assert path.read_text() == "{"
    assert main(["notebooks", "--check", str(tmp_path / "gone.ipynb")]) == 2


@pytest.mark.chapters
def test_command_executes_in_the_notebook_s_folder_and_without_a_gpu(tmp_path, capsys):
    path = tmp_path / "a.ipynb"
    source = "import os\nprint(os.getcwd(), repr(os.environ['CUDA_VISIBLE_DEVICES']))"
    path.write_text(nbformat.writes(new_notebook(cells=[new_code_cell(source)])))
    assert main(["notebooks", "--execute", str(path)]) == 0
    [output] = notebooks.parse(path.read_text()).cells[0].outputs
    assert output.text == f"{tmp_path} ''\n"
    before = nbformat.writes(new_notebook(cells=[new_code_cell("1 / 0")]))
    path.write_text(before)
    assert main(["notebooks", "--execute", str(path)]) == 2
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert path.read_text() == before


def test_a_page_reads_links_to_terms_and_sources_as_roles():
    stored = ("A [warp](glossary.md#term-warp), its [lanes](glossary.md#term-lane) and `{x}`, as "
              "([Boehm, 2022](references.md#boehm2022matmul); "
              "[NVIDIA Corporation, 2025](references.md#ptxisa)) have it.")
    assert normal(new_markdown_cell(stored)).cells[0].source == stored
    assert roles.resolved(stored) == (
        "A {term}`warp <warp>`, its {term}`lanes <lane>` and `{x}`, as "
        "{cite}`boehm2022matmul,ptxisa` have it.")
    elsewhere = "[here](glossary.md#term-nothing-like-it) and ([there](references.md#nobody))"
    assert roles.resolved(elsewhere) == elsewhere


@pytest.mark.parametrize("role", ["{term}`warp`", "{cite}`ptxisa`", "{cite:p}`ptxisa`"])
def test_a_role_which_a_notebook_would_show_raw_is_refused(role):
    with pytest.raises(notebooks.NotebookError, match="shows raw"):
        normal(new_markdown_cell(f"As {role} says."))
