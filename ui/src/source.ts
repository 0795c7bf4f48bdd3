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

  private async fetch(name: string, args: Args | undefined, init: RequestInit): Promise<Response> {
    const parts: string[] = [];
    for (const [key, value] of Object.entries(args ?? {})) {
      if (value !== undefined) parts.push(`${key}=${encodeURIComponent(String(value))}`);
    }
    const began = performance.now();
    let response: Response;
    this.nAsked++;
    try {
      response = await fetch(parts.length ? `${name}?${parts.join("&")}` : name, init);
    } catch (e) {
      if ((e as Error).name !== "AbortError") this.onGone(true);
      throw e;
    } finally {
      this.nAsked--;
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
    return (await (await this.fetch(name, args, { signal })).json()) as T;
  }

  async bytes(name: string, args?: Args, signal?: AbortSignal): Promise<ArrayBuffer> {
    const began = performance.now();
    const response = await this.fetch(name, args, { signal });
    const timing = this.timings[this.timings.length - 1];
    const buffer = await response.arrayBuffer();
    if (timing) timing.client = performance.now() - began;
    return buffer;
  }

  async post<T>(name: string, args: Args, sql: string): Promise<T> {
    const init = { method: "POST", headers: { "Content-Type": "application/sql" }, body: sql };
    return (await (await this.fetch(name, args, init)).json()) as T;
  }
}
