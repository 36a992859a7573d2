// Light or dark: what is chosen here, else what Airflow shows around the page, else what the system says.

const KEY = "replication-theme";
const CHOICES = ["auto", "light", "dark"];
const system = matchMedia("(prefers-color-scheme: dark)");

function chosen() {
  try {
    return localStorage.getItem(KEY) ?? "auto";
  } catch {
    return "auto";
  }
}

/** Airflow marks its root element; in a frame of the same origin it can be seen. */
function around() {
  try {
    if (window.parent === window) return null;
    const marks = window.parent.document.documentElement.classList;
    return marks.contains("dark") ? "dark" : marks.contains("light") ? "light" : null;
  } catch {
    return null;
  }
}

function apply(button) {
  const choice = chosen();
  const theme = choice === "auto" ? (around() ?? (system.matches ? "dark" : "light")) : choice;
  document.documentElement.dataset.theme = theme;
  button.textContent = { auto: "◐ Auto", light: "☀ Light", dark: "☾ Dark" }[choice];
  button.setAttribute("aria-label", `Theme: ${choice}`);
}

/** Makes the button go through the choices, and follows the system and Airflow. */
export function startTheme(button) {
  apply(button);
  system.addEventListener("change", () => apply(button));
  button.addEventListener("click", () => {
    const next = CHOICES[(CHOICES.indexOf(chosen()) + 1) % CHOICES.length];
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // Without storage the choice is gone with the page.
    }
    apply(button);
  });
  try {
    if (window.parent !== window) {
      new MutationObserver(() => apply(button)).observe(window.parent.document.documentElement, {
        attributes: true, attributeFilter: ["class"],
      });
    }
  } catch {
    // A frame of another origin: the system decides.
  }
}
