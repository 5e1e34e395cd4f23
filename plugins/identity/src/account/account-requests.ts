import type { SealedBox, Static, TaskRun } from '@platform/sdk';
import type { AskedAtThePages } from '../../contract/account-request.ts';
import type { Headers } from '../sign-in/request-cookies.ts';
import type { Ctx, IdentityTx } from '../context.ts';
import { pageLanguage } from '../mail/page-language.ts';
import type { Realm, Realms } from '../realms.ts';

export type RequestKind = Static<typeof AskedAtThePages>['kind'];
export interface Asked {
  readonly email: string;
  readonly display_name?: string;
  readonly password_hash?: string;
  readonly group?: string;
  readonly client_id?: string;
  /** By which the account is opened. */
  readonly invitation?: string;
  /** Of the page on which it was asked. */
  readonly locale?: string;
}
/** What a request comes to, in one transaction; what it returns runs after the commit. */
export type Answer = (tx: IdentityTx, realm: Realm, asked: Asked) => Promise<(() => Promise<void>) | undefined>;

/** Who asks, and in which language the answer is read. */
export function askedBy(email: string, headers: Headers): Asked {
  const locale = pageLanguage(headers);
  return { email, ...(locale ? { locale } : {}) };
}

/**
 * What people ask for at the pages without being signed in: to open an account, to reset a password, to have an address confirmed, to
 * recover an account. The page's request only queues it, the same for everybody; whether there is an account is looked at afterwards. So
 * neither the answer nor the time it takes says who has one (IDN-007).
 */
export class AccountRequests {
  readonly #ctx: Ctx;
  readonly #box: SealedBox;
  readonly #realms: Realms;
  readonly #answers: Readonly<Record<RequestKind, Answer>>;

  constructor(ctx: Ctx, { box, realms, answers }: { box: SealedBox; realms: Realms; answers: Readonly<Record<RequestKind, Answer>> }) {
    this.#ctx = ctx;
    this.#box = box;
    this.#realms = realms;
    this.#answers = answers;
  }

  async write({ env_id }: Realm, kind: RequestKind, asked: Asked): Promise<void> {
    const request_id = this.#ctx.platform.newId();
    const sealed = this.#box.seal(purposeOf(request_id), JSON.stringify(asked));
    await this.#ctx.db.tx(tx => tx.enqueue('answer', { request_id, env_id, kind, sealed }, { envId: env_id }));
  }

  /** The task of a request: its answer and its end are one transaction. */
  async answer({ request_id, env_id, kind, sealed }: Static<typeof AskedAtThePages>, run: TaskRun): Promise<void> {
    const opened = this.#box.open(purposeOf(request_id), sealed);
    const realm = await this.#realms.find(env_id);
    if (opened === undefined || !realm) return;
    const after = await this.#ctx.db.tx(async tx => {
      const then = await this.#answers[kind](tx, realm, JSON.parse(opened) as Asked);
      await run.finish(tx);
      return then;
    });
    await after?.();
  }
}

const purposeOf = (requestId: string): string => `auth:request:${requestId}`;
