/** What the server answered instead of a result; the message is the server's own. */
export class Refusal extends Error {
  constructor(status, message, seconds) {
    super(message);
    this.status = status;
    this.seconds = seconds; // after which it may be asked again; null if it didn't say
  }
}

/** The server that the page comes from, with the key, which is kept nowhere else. */
export class Server {
  constructor() {
    this.key = "";
  }

  /** The JSON of an answer; without a body, of a GET. Throws a Refusal. */
  async ask(path, body = null, signal = undefined) {
    return (await this.send(path, body, signal)).json();
  }

  // the parts of a text that comes as server-sent events; as `ask`
  async *stream(path, body, signal) {
    const { body: sent } = await this.send(path, body, signal);
    const reader = sent.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read(); // oxlint-disable-line no-await-in-loop
      if (done) {
        return;
      }
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      yield* events.map((event) => event.slice("data: ".length)).flatMap(readEvent);
    }
  }

  async send(path, body, signal) {
    const key = this.key === "" ? {} : { Authorization: `Bearer ${this.key}` };
    const headers = { "Content-Type": "application/json", ...key };
    const sent = body === null ? {} : { method: "POST", body: JSON.stringify(body) };
    let response;
    try {
      response = await fetch(path, { ...sent, headers, signal });
    } catch (error) {
      throw signal?.aborted ? error : new Refusal(0, "The server can't be reached.", null);
    }
    if (!response.ok) {
      throw await readRefusal(response);
    }
    return response;
  }

  /** The same request as a line of a shell; a key is left to the reader. */
  writeCurl(path, body) {
    const key = this.key === "" ? "" : ' -H "Authorization: Bearer $KEY"';
    const [url, data] = [location.origin + path, JSON.stringify(body)].map(quoteForShell);
    return `curl ${url}${key} -H 'Content-Type: application/json' -d ${data}`;
  }
}

function quoteForShell(text) {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** The text of an event, or none at the end. */
function readEvent(data) {
  const { text, error } = data === "[DONE]" ? {} : JSON.parse(data);
  if (error !== undefined) {
    throw new Refusal(0, error.message, null);
  }
  return text ?? [];
}

async function readRefusal(response) {
  const { error } = await response.json().catch(() => ({})); // a proxy's answer isn't JSON
  const message = error?.message ?? error ?? `${response.status} ${response.statusText}`;
  return new Refusal(response.status, message, Number(response.headers.get("Retry-After")) || null);
}
