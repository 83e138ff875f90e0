const HEAD = ["number", "place", "text", "label", "decision", "new_label"];

/** What was decided, by the number of a row: {kind, label}; `kind` is keep, change or skip. */
export class Decisions {
  /** `storage` is the browser's, if it has one; `identity` is that of the reviewed file. */
  constructor(identity, storage) {
    this.key = `bertkit review ${identity}`;
    this.storage = storage;
    this.made = attempt(() => new Map(JSON.parse(storage.getItem(this.key)))) ?? new Map();
    this.store();
  }

  of(row) {
    return this.made.get(row.number);
  }

  make(row, kind, label) {
    this.made.set(row.number, { kind, label });
    this.store();
  }

  store() {
    const kept = JSON.stringify([...this.made]);
    this.isKept = attempt(() => this.storage.setItem(this.key, kept) ?? true) ?? false;
  }

  /** How many of the rows have a decision of each kind. */
  count(rows) {
    const counts = { keep: 0, change: 0, skip: 0 };
    for (const row of rows.filter((one) => this.of(one))) {
      counts[this.of(row).kind] += 1;
    }
    return counts;
  }

  /** The decisions as CSV (RFC 4180), with the mark by which Excel knows that it is UTF-8. */
  writeTable(rows) {
    const lines = rows.filter((row) => this.of(row)).map((row) => {
      const { kind, label } = this.of(row);
      return [row.number, row.place, row.text, row.given, kind, label];
    });
    const quote = (cell) => `"${String(cell).replaceAll('"', '""')}"`;
    return `\ufeff${[HEAD, ...lines].map((cells) => `${cells.map(quote).join(",")}\r\n`).join("")}`;
  }
}

/** What a function returns; undefined if it can't, as where a browser has no storage. */
export function attempt(read) {
  try {
    return read();
  } catch {
    return undefined;
  }
}
