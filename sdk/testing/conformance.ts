import { describe } from 'vitest';
import type { AnyContract } from '@platform/sdk';
import type { BootOptions } from './boot-options.ts';
import { answerPromises } from './conformance/answer-promises.ts';
import { ConformanceSubject, type Exceptions } from './conformance/conformance-subject.ts';
import { contractPromises } from './conformance/contract-promises.ts';
import { gatePromises } from './conformance/gate-promises.ts';
import { lifePromises } from './conformance/life-promises.ts';
import { listingPromises } from './conformance/listing-promises.ts';
import { workPromises } from './conformance/work-promises.ts';

/**
 * What every plugin must do, in-house or not (house 19): refuse the nameless, the wrong kind and the unscoped on every gated route, refuse
 * unknown members, answer or refuse by name what fits its contract, show rows with the columns of its pages, take a repeated request and
 * a repeated event once, let go the rows of a deleted environment, describe itself truly, migrate twice, go on after its database or its
 * key-value store was away, finish what was begun while it drains. What of it does not fit a service stands in `exceptions`, with the
 * reason.
 */
export function describeConformance<C extends AnyContract, U extends Readonly<Record<string, AnyContract>>>(
  plugin: { readonly contract: C; readonly uses: U } & object,
  options: BootOptions<U> = {},
  exceptions: Exceptions<C> = {},
): void {
  describe(`conformance of ${plugin.contract.base.id}`, () => {
    const subject = new ConformanceSubject(plugin, options, exceptions) as unknown as ConformanceSubject;
    contractPromises(subject);
    gatePromises(subject);
    answerPromises(subject);
    listingPromises(subject);
    workPromises(subject);
    lifePromises(subject);
  });
}
