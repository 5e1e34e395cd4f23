import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { Type } from '@platform/sdk';
import { Value } from 'typebox/value';
import { ModuleFault } from '../metering/byte-reader.ts';
import { CEILING_PAGES, inspect, type Inspected } from '../modules/inspection.ts';
import { COMPILERS, LANGUAGES } from './compiler.ts';

const Settings = Type.Object({
  name: Type.String({ pattern: '^[a-z][a-z0-9-]*$' }),
  language: Type.Union(LANGUAGES.map(language => Type.Literal(language))),
  source: Type.String(),
  hooks: Type.Array(Type.String(), { minItems: 1 }),
  protocol: Type.Optional(Type.Union([Type.Literal('raw'), Type.Literal('hook')])),
  parameters: Type.Optional(Type.Object({}, { additionalProperties: true })),
});

/** A function as its author has it: function.json, sources, tests, and what was built of them. */
export class FunctionFolder {
  readonly path: string;
  readonly name: string;
  readonly hooks: readonly string[];
  readonly protocol: 'raw' | 'hook';
  readonly parameters: object;
  readonly #language: (typeof LANGUAGES)[number];
  readonly #source: string;

  /** Throws an Error that says what is wrong with the folder. */
  constructor(path: string) {
    this.path = resolve(path);
    const settings = readJson(join(this.path, 'function.json'));
    if (!Value.Check(Settings, settings)) {
      const [fault] = Value.Errors(Settings, settings);
      throw new Error(`${join(this.path, 'function.json')}${fault?.instancePath ?? ''} ${fault?.message ?? 'is wrong'}.`);
    }
    const { name, language, source, hooks, protocol = 'raw', parameters = {} } = settings;
    [this.name, this.#language, this.#source, this.hooks, this.protocol, this.parameters] = [
      name,
      language,
      source,
      hooks,
      protocol,
      parameters,
    ];
  }

  get built(): string {
    return join(this.path, 'build', 'function.wasm');
  }

  /** Compiles it and looks at what came of it as an upload does. Throws an Error that says what to do. */
  build(): Inspected & { readonly size: number } {
    const compiler = COMPILERS[this.#language];
    const missing = compiler.missing(this.path);
    if (missing) throw new Error(missing);
    mkdirSync(dirname(this.built), { recursive: true });
    compiler.compile({ folder: this.path, source: this.#source, name: this.name, output: this.built });
    const bytes = this.module();
    return { ...inspected(bytes, this.hooks), size: bytes.length };
  }

  module(): Uint8Array<ArrayBuffer> {
    if (!existsSync(this.built)) throw new Error(`${basename(this.path)} is not built: run \`platform func build\`.`);
    return Uint8Array.from(readFileSync(this.built));
  }
}

/** What the service would say of a module at its upload. Throws an Error with its refusal. */
export function inspected(bytes: Uint8Array<ArrayBuffer>, hooks: readonly string[]): Inspected {
  try {
    return inspect(bytes, hooks, CEILING_PAGES);
  } catch (error) {
    if (error instanceof ModuleFault) throw new Error(`The service would refuse this module: ${error.code}: ${error.message}`);
    throw error;
  }
}

/** Throws an Error that names the file. */
export function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new Error(code === 'ENOENT' ? `There is no ${file}.` : `${file}: ${message}`);
  }
}
