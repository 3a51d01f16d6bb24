// The theme puts every copy button into a landmark of its own; a page with many of them is hard to find one's way in.
const unmark = () => document.querySelectorAll("nav.md-code__nav:not([role])").forEach((each) => each.setAttribute("role", "none"));
new MutationObserver(unmark).observe(document.documentElement, { childList: true, subtree: true });
unmark();
