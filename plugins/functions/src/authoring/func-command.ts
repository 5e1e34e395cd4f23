import { type PlatformCommand, verbs } from '@platform/sdk';
import build from './build-command.ts';
import create from './new-command.ts';
import run from './run-command.ts';
import test from './test-command.ts';

/** `platform func`: what an author of functions does on the own machine. No platform has to run. */
const command: PlatformCommand = { ...verbs({ new: create, build, run, test }), offline: true };
export default command;
