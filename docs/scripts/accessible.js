// The theme puts every copy button into a landmark of its own; a page with many of them is hard to find one's way in.
// A table that is wider than the page scrolls: the keyboard must reach it.
const WIDE = ".md-typeset__scrollwrap:not([tabindex]), .steelyard:not([tabindex])";
const improve = () => {
  document.querySelectorAll("nav.md-code__nav:not([role])").forEach((each) => each.setAttribute("role", "none"));
  document.querySelectorAll(WIDE).forEach((each) => each.scrollWidth > each.clientWidth && each.setAttribute("tabindex", "0"));
};
new MutationObserver(improve).observe(document.documentElement, { childList: true, subtree: true });
improve();
