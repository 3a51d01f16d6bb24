// Light or dark: the setting of the system, until the user chooses.

const KEY = "steelyard-theme";

export function isDark() {
  if (matchMedia("print").matches) return false;
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export function setUpTheme(button, changed) {
  const remembered = recallTheme();
  if (remembered === "dark" || remembered === "light") document.documentElement.dataset.theme = remembered;
  const show = () => {
    button.setAttribute("aria-pressed", String(isDark()));
    button.querySelector(".word").textContent = isDark() ? "Light" : "Dark";
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    const next = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    rememberTheme(next);
    show();
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    show();
    changed();
  });
  show();
}

function recallTheme() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function rememberTheme(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Without storage, as in a frame, the choice lasts until the page is closed.
  }
}
