// Where answers come from: the server, or the file that the page itself is.

export type Args = Record<string, string | number | undefined>;

export interface Source {
  /** A JSON answer. */
  ask<T>(name: string, args?: Args, signal?: AbortSignal): Promise<T>;
  /** A binary answer. */
  bytes(name: string, args?: Args, signal?: AbortSignal): Promise<ArrayBuffer>;
  /** Ask with a body. */
  post<T>(name: string, args: Args, sql: string): Promise<T>;
  readonly isOffline: boolean;
}

export class AskError extends Error {
  constructor(message: string, readonly status: number) {
    super(message);
  }
}

export class HttpSource implements Source {
  readonly isOffline = false;
  /** Told when the server is gone, and when it is back. */
  onGone: (isGone: boolean) => void = () => undefined;
  nAsked = 0; // questions without an answer yet
  readonly timings: { client: number; server: number; cpu: number; name: string }[] = [];

  /** Ask, and read the answer; it counts as asked until all of it has come. */
  private async fetch<T>(name: string, args: Args | undefined, init: RequestInit, read: (response: Response) => Promise<T>): Promise<T> {
    this.nAsked++;
    try {
      return await read(await this.send(name, args, init));
    } finally {
      this.nAsked--;
    }
  }

  private async send(name: string, args: Args | undefined, init: RequestInit): Promise<Response> {
    const parts: string[] = [];
    for (const [key, value] of Object.entries(args ?? {})) {
      if (value !== undefined) parts.push(`${key}=${encodeURIComponent(String(value))}`);
    }
    const began = performance.now();
    let response: Response;
    try {
      response = await fetch(parts.length ? `${name}?${parts.join("&")}` : name, init);
    } catch (e) {
      if ((e as Error).name !== "AbortError") this.onGone(true);
      throw e;
    }
    this.onGone(false);
    if (!response.ok) throw new AskError(await response.text(), response.status);
    const timing = /dur=([\d.]+), cpu;dur=([\d.]+)/.exec(response.headers.get("Server-Timing") ?? "");
    if (this.timings.length < 20000) {
      this.timings.push({ name, client: performance.now() - began, server: timing ? Number(timing[1]) : 0, cpu: timing ? Number(timing[2]) : 0 });
    }
    return response;
  }

  async ask<T>(name: string, args?: Args, signal?: AbortSignal): Promise<T> {
    return this.fetch(name, args, { signal }, (response) => response.json() as Promise<T>);
  }

  async bytes(name: string, args?: Args, signal?: AbortSignal): Promise<ArrayBuffer> {
    const began = performance.now();
    return this.fetch(name, args, { signal }, async (response) => {
      const timing = this.timings[this.timings.length - 1];
      const buffer = await response.arrayBuffer();
      if (timing) timing.client = performance.now() - began;
      return buffer;
    });
  }

  async post<T>(name: string, args: Args, sql: string): Promise<T> {
    const init = { method: "POST", headers: { "Content-Type": "application/sql" }, body: sql };
    return this.fetch(name, args, init, (response) => response.json() as Promise<T>);
  }
}
