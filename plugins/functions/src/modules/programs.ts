import { ComponentSections, isComponent } from '../components/component-sections.ts';
import type { Transpiler } from '../components/transpiler.ts';
import type { ComponentCode, Program } from '../isolation/wire.mts';
import { ModuleFault } from '../metering/byte-reader.ts';
import { metered } from './inspection.ts';

/**
 * Makes programs of what was uploaded: a module is metered; a component is made code and modules of in a locked process, and these are
 * metered.
 */
export class Programs {
  readonly #transpiler: Pick<Transpiler, 'transpile'>;

  constructor(transpiler: Pick<Transpiler, 'transpile'>) {
    this.#transpiler = transpiler;
  }

  /** Throws {@link ModuleFault}. */
  async make(bytes: Uint8Array<ArrayBuffer>, pages: number): Promise<Program> {
    return isComponent(bytes) ? this.#component(bytes, pages) : { kind: 'core', bytes: metered(bytes, pages).bytes };
  }

  async #component(bytes: Uint8Array, pages: number): Promise<ComponentCode> {
    // Every name is checked here, before jco writes them into code.
    const component = new ComponentSections(bytes);
    const { imports, exports, modules } = component;
    const files = await this.#transpiler.transpile({ component: component.bytes, imports, exports });
    const glue = files.get('guest.js');
    if (!glue) throw new ModuleFault('malformed', 'The component has no code.');
    const cores = [...files].filter(([name]) => name.endsWith('.wasm'));
    const known = cores.every(([, core]) => modules.some(module => Buffer.compare(module.bytes, core) === 0));
    if (!known) throw new ModuleFault('component_refused', 'The component runs modules that are not in it as they are.');
    return {
      kind: 'component',
      imports,
      glue: new TextDecoder().decode(glue),
      cores: cores.map(([name, core]) => [name, metered(core as Uint8Array<ArrayBuffer>, pages, true).bytes]),
    };
  }
}
