"""Charts of a comparison, drawn with altair: embedded in the page, or saved as PNG and SVG."""
