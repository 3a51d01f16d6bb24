"""Charts of a comparison: drawn by altair, shown in the page, saved as PNG and SVG."""
