import { commandOf } from '@platform/sdk';
import { FunctionFolder } from './function-folder.ts';

const USAGE = `platform func build [FOLDER]

  Compiles the function in FOLDER (here when absent) to FOLDER/build/function.wasm, and says what the service would say of it at its
  upload.`;

export default commandOf<{ folder: string }>({
  usage: USAGE,
  read: args => (args.length <= 1 && !args[0]?.startsWith('-') ? { folder: args[0] ?? '.' } : undefined),
  run: async ({ folder }, { print }) => {
    const built = new FunctionFolder(folder);
    const { size, exports, imports } = built.build();
    print(`${built.built}: ${size} bytes`);
    print(`exports ${exports.join(', ')}`);
    print(`imports ${imports.join(', ') || 'nothing'}`);
    return 0;
  },
});
