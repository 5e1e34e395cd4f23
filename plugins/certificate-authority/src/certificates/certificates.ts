import { type RequestOf, reply } from '@platform/sdk';
import type { certificateAuthority } from '../../contract/index.ts';
import type { Ctx } from '../context.ts';
import type { CertificateMeta, CertificateStore } from './certificate-store.ts';
import type { Revocation } from './revocation.ts';

type Contract = typeof certificateAuthority;
type State = 'valid' | 'revoked' | 'expired';

/** What operators do with certificates: look for them, take them back, read them. */
export class Certificates {
  readonly #ctx: Ctx;
  readonly #store: CertificateStore;
  readonly #revocation: Revocation;

  constructor(ctx: Ctx, store: CertificateStore, revocation: Revocation) {
    this.#ctx = ctx;
    this.#store = store;
    this.#revocation = revocation;
  }

  async list({ query }: RequestOf<Contract, 'listCertificates'>) {
    const { q, kind, state, source } = query;
    const wanted = q?.trim().toLowerCase();
    const fits = (meta: CertificateMeta) =>
      (kind === undefined || meta.kind === kind) &&
      (source === undefined || meta.source === source) &&
      (state === undefined || this.#stateOf(meta) === state) &&
      (!wanted ||
        [meta.domain, meta.serial, meta.thumbprint.toLowerCase(), meta.certificate_id, ...(meta.names ?? [])].some(text =>
          text.includes(wanted),
        ));
    const { items, next_cursor } = await this.#ctx.page(
      query,
      { list: 'certificates', order: { certificate_id: 'id' } },
      async ({ after, limit }) => this.#store.newest(limit, after?.[0] as string | undefined, fits),
    );
    const uses = await this.#revocation.uses(items);
    return { items: items.map(meta => this.#row(meta, uses)), next_cursor };
  }

  /** Refused by every verifier within seconds. A repeat changes nothing. */
  async revoke({ params, body, caller }: RequestOf<Contract, 'revokeCertificate'>) {
    const done = await this.#revocation.revoke(params.certificate_id, body.reason ?? 0, { caller, by: `operator:${caller.subject}` });
    if (!done) throw this.#ctx.problem('certificate_not_found');
    return this.#row(done.meta, await this.#revocation.uses([done.meta]));
  }

  async get({ params }: RequestOf<Contract, 'getCertificate'>) {
    const [meta, chain] = [this.#store.get(params.certificate_id), await this.#store.chain(params.certificate_id)];
    if (!meta || chain === undefined) throw this.#ctx.problem('certificate_not_found');
    return { ...this.#row(meta, await this.#revocation.uses([meta])), account_id: meta.account_id ?? null, chain_pem: chain };
  }

  /** The chain as a file: never a key, which the authority does not have or does not give. */
  async download({ params }: RequestOf<Contract, 'downloadCertificate'>) {
    const chain = await this.#store.chain(params.certificate_id);
    if (chain === undefined) throw this.#ctx.problem('certificate_not_found');
    return reply(chain, {
      headers: {
        'content-type': 'application/pem-certificate-chain',
        'content-disposition': `attachment; filename="${params.certificate_id}.pem"`,
      },
    }) as never;
  }

  #stateOf({ revoked, not_after }: CertificateMeta): State {
    if (revoked) return 'revoked';
    return Date.parse(not_after) <= this.#ctx.clock.now().getTime() ? 'expired' : 'valid';
  }

  #row(meta: CertificateMeta, uses: ReadonlyMap<string, { readonly count: number; readonly last: string }>) {
    const {
      certificate_id,
      serial,
      domain,
      names = [],
      kind,
      not_before,
      not_after,
      thumbprint,
      revoked,
      revoked_at,
      reason,
      source,
    } = meta;
    const used = uses.get(thumbprint);
    return {
      certificate_id,
      serial,
      domain,
      names: [...names],
      kind,
      state: this.#stateOf(meta),
      not_before,
      not_after,
      thumbprint,
      revoked,
      revoked_at,
      reason,
      source,
      used_since: used?.count ?? 0,
      last_used_at: used?.last ?? null,
    };
  }
}
