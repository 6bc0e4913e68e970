"""What pages show, taken apart."""


def cells(markdown: str) -> list[list[str]]:
    """Rows of a Markdown table, its head and rule left out."""
    rows = [r for r in markdown.splitlines() if r.startswith("|")]
    return [[c.strip() for c in row.strip("|").split("|")] for row in rows[2:]]
