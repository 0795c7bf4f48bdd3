// The texts of names, asked for in batches when something that is seen needs them.

import * as format from "./format";
import type { Source } from "./source";

export class Names {
  private readonly texts = new Map<number, string>();
  private wanted = new Set<number>();
  private isAsking = false;
  private shorts?: Promise<Map<number, string>>;
  onChange: () => void = () => undefined;

  constructor(private readonly source: Source, private readonly report: number) {}

  get(id: number): string | undefined {
    const text = this.texts.get(id);
    if (text === undefined) {
      this.wanted.add(id);
      if (!this.isAsking) {
        this.isAsking = true;
        queueMicrotask(() => void this.ask());
      }
    }
    return text;
  }

  put(id: number, text: string): void {
    this.texts.set(id, text);
  }

  get isBusy(): boolean {
    return this.isAsking;
  }

  async all(ids: number[]): Promise<string[]> {
    const missing = ids.filter((id) => !this.texts.has(id));
    for (let i = 0; i < missing.length; i += 1000) await this.load(missing.slice(i, i + 1000));
    return ids.map((id) => this.texts.get(id) ?? "?");
  }

  /** Learn the short names of all kernels, for tables. */
  async learn(): Promise<void> {
    await this.load([]);
    await this.all([...(await this.shorts!).keys()]);
  }

  private async load(ids: number[]): Promise<void> {
    const f = this.report || undefined;
    this.shorts ??= this.source.ask<[number, string][]>("shorts", { f }).then((all) => new Map(all), () => new Map());
    if (!ids.length) return;
    const [texts, shorts] = await Promise.all([this.source.ask<string[]>("names", { id: ids.join(","), f }), this.shorts]);
    ids.forEach((id, i) => {
      this.texts.set(id, texts[i] ?? "?");
      const short = shorts.get(id);
      if (short) format.learn(texts[i], short);
    });
  }

  private async ask(): Promise<void> {
    try {
      while (this.wanted.size) {
        const ids = [...this.wanted].slice(0, 1000);
        ids.forEach((id) => this.wanted.delete(id));
        await this.load(ids);
      }
    } catch {
      // Without the server there are no more names; boxes stay without a label.
    } finally {
      this.isAsking = false;
      this.onChange();
    }
  }
}
