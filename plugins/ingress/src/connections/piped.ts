import type { Ctx } from '../context.ts';
import type { Mapping } from '../host-mappings.ts';
import { type ClientHello, isStrict } from './client-hello.ts';
import { isPrivate } from './private-source.ts';

/**
 * Whether a connection goes through as it is (G-PROXY-01): everything where layer 7 is off; else the platform's own names, asked for from
 * inside, by a workload or, where names alone decide, by anybody. Of what people open in browsers the certificate is ours to show.
 */
export function isPiped(
  { layer7, piped }: Pick<Ctx['config'], 'layer7' | 'piped'>,
  { from, hello, source }: { readonly from: string | undefined; readonly hello: ClientHello; readonly source: Mapping['source'] },
): boolean {
  if (!layer7) return true;
  return source === 'platform' && isPrivate(from) && (piped === 'names' || isStrict(hello));
}
