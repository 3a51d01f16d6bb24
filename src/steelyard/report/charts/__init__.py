"""Charts of a comparison as Vega-Lite: embedded in the page, or saved as PNG and SVG; and those of `plot()`."""
