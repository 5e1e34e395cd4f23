import { ModuleFault } from './byte-reader.ts';

/**
 * What a module may ask of the engine's compilers, whose work no fuel pays for: 50 KB with 49,000 locals take seconds, 250 KB with one
 * crowded label end the process. What compilers of the field write is far below (facts on WebAssembly, section 4: 118 locals, 17,798
 * entries).
 */
export const CAPS = {
  functions: 30_000,
  locals: 2_000,
  labels: 20_000,
  nesting: 1_000,
  bodyBytes: 1_048_576,
  localsByBlocks: 4_000_000,
  moduleLocalsByBlocks: 40_000_000,
  imports: 64,
  exports: 1_024,
} as const;

export interface FunctionSize {
  readonly bytes: number;
  readonly locals: number;
  readonly labels: number;
  readonly nesting: number;
  readonly blocks: number;
}

/** Throws when a function would be slow or dangerous to compile. */
export function holdFunction(index: number, { bytes, locals, labels, nesting, blocks }: FunctionSize): void {
  const over = (what: string, is: number, most: number) => {
    if (is > most) throw new ModuleFault('too_complex', `Function ${index} has ${is} ${what}, at most ${most} are taken.`);
  };
  over('bytes', bytes, CAPS.bodyBytes);
  over('locals', locals, CAPS.locals);
  over('branch targets', labels, CAPS.labels);
  over('nested blocks', nesting, CAPS.nesting);
  over('locals times blocks', locals * blocks, CAPS.localsByBlocks);
}
