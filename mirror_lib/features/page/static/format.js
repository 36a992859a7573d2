// Numbers as people read them. Null is "not known" and shown as a dash.

const DASH = "–";
const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
// Made once: making one takes longer than formatting a hundred times.
const instant = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "medium" });
const fine = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

export function count(value) {
  return value === null || value === undefined ? DASH : whole.format(value);
}

/** 1,234 below ten thousand, 12.3 k, 4.5 M above. */
export function short(value) {
  if (value === null || value === undefined) return DASH;
  for (const [size, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (Math.abs(value) >= size) return `${fine.format(value / (unit === "k" ? 1e3 : size))} ${unit}`;
  }
  return Number.isInteger(value) ? whole.format(value) : fine.format(value);
}

export function bytes(value) {
  if (value === null || value === undefined) return DASH;
  let rest = value;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (Math.abs(rest) < 1024) return `${unit === "B" ? whole.format(rest) : fine.format(rest)} ${unit}`;
    rest /= 1024;
  }
  return `${fine.format(rest)} TiB`;
}

/** A duration of seconds in the unit that fits; "never" stays. */
export function duration(value) {
  if (value === null || value === undefined) return DASH;
  if (value === "never") return "never";
  if (value < 1) return value === 0 ? "0 s" : "<1 s";
  if (value < 120) return `${whole.format(value)} s`;
  if (value < 7200) return `${whole.format(value / 60)} min`;
  if (value < 172800) return `${fine.format(value / 3600)} h`;
  return `${fine.format(value / 86400)} days`;
}

export function moment(text) {
  if (!text) return DASH;
  return instant.format(new Date(text));
}

export function clock(date, withDay) {
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return withDay ? `${date.toLocaleDateString([], { month: "short", day: "numeric" })} ${time}` : time;
}

/** `between-syncs` and `sync_topics` as words. */
export function words(code) {
  return code ? code.replaceAll(/[-_]/g, " ") : DASH;
}
