"""What pages, panel and explorers show: a scene of HTML and SVG, and the subjects drawn with it."""
