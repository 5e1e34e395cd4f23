import type { Caller, RequestOf } from '@platform/sdk';
import type { RecoveryRow } from '../../contract/schema/recovery.ts';
import type { Contract, Ctx, IdentityTx } from '../context.ts';
import type { Realms } from '../realms.ts';
import type { Recoveries } from './recoveries.ts';
import { ruleOf } from './recovery-rule.ts';

type Asked = RequestOf<Contract, 'approveRecovery'>;
type Row = Omit<RecoveryRow, 'can_approve' | 'can_refuse'> & { readonly env_id: string };
const REFUSABLE: ReadonlySet<Row['status']> = new Set(['waiting', 'awaiting_approval', 'approved', 'offered']);

/** What administrators see of recoveries, and decide. Two people take part in each: nobody approves the own one. */
export class RecoveryDecisions {
  readonly #ctx: Ctx;
  readonly #parts: { realms: Realms; recoveries: Recoveries };

  constructor(ctx: Ctx, parts: { realms: Realms; recoveries: Recoveries }) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** Those that were confirmed: what nobody proved an address for is nobody's business. */
  async list({ query, caller, env: envId }: RequestOf<Contract, 'listRecoveries'>) {
    const { sql } = this.#ctx.db;
    const spec = { list: `recoveries ${envId}`, order: { 'r.recovery_id': 'id' } } as const;
    const { items, next_cursor } = await this.#ctx.page(query, spec, ({ where, order, limit }) =>
      this.#rows(sql`r.env_id = ${envId} and ${where} order by ${order} limit ${limit}`),
    );
    return { items: items.map(row => shown(row, caller)), next_cursor };
  }

  async approve(request: Asked) {
    const { recoveries, realms } = this.#parts;
    const row = await this.#reachable(request);
    if (isOwn(row, request.caller))
      throw this.#ctx.problem('own_account', { detail: 'Somebody else approves the recovery of your account.' });
    const realm = await realms.ofEnv(row.env_id);
    const rule = ruleOf(realm);
    if (!rule) throw this.#ctx.problem('recovery_off', { detail: 'Turn it on again before you approve one.' });
    return this.#decide(request, tx =>
      recoveries.approve(tx, realm, rule, row.recovery_id, { caller: request.caller, reason: request.body.reason }),
    );
  }

  async refuse(request: RequestOf<Contract, 'refuseRecovery'>) {
    const { recoveries, realms } = this.#parts;
    const row = await this.#reachable(request);
    const realm = await realms.ofEnv(row.env_id);
    return this.#decide(request, tx =>
      recoveries.refuse(tx, realm, row.recovery_id, { caller: request.caller, reason: request.body.reason }),
    );
  }

  async #decide(request: Asked, decide: (tx: IdentityTx) => Promise<boolean>) {
    if (!(await this.#ctx.db.tx(decide)))
      throw this.#ctx.problem('recovery_decided', { detail: 'Load the list again: it was decided, has ended, or waits for time alone.' });
    return shown(await this.#reachable(request), request.caller);
  }

  async #reachable({ params, caller, env: envId }: Asked): Promise<Row> {
    const { sql } = this.#ctx.db;
    const [row] = await this.#rows(sql`r.recovery_id = ${params.recovery_id}`);
    if (!row || (row.env_id !== envId && !caller.platformAdmin)) throw this.#ctx.problem('recovery_not_found');
    return row;
  }

  #rows(which: unknown): Promise<Row[]> {
    return this.#ctx.db.sql<Row[]>`
      select r.recovery_id, r.env_id, r.user_id, u.email, u.display_name, r.device, r.confirmed_at, r.wait_until as ready_at, r.expires_at,
        coalesce(d.email, r.decided_by::text) as decided_by,
        r.decided_at, r.reason as decision_reason,
        case when r.status = 'waiting' and r.approved then 'approved' when r.status = 'waiting'
          and r.needs_approval then 'awaiting_approval' else r.status end as status
      from account_recoveries r join users u using (user_id) left join users d on d.user_id = r.decided_by
      where r.confirmed_at is not null and ${which}`;
  }
}

/** The same account, or the account of the same address in another realm. */
const isOwn = ({ user_id, email }: Row, { userId, email: own }: Caller): boolean =>
  user_id === userId || email.toLowerCase() === own?.toLowerCase();

function shown(row: Row, caller: Caller) {
  const { env_id: _, ...told } = row;
  return { ...told, can_approve: row.status === 'awaiting_approval' && !isOwn(row, caller), can_refuse: REFUSABLE.has(row.status) };
}
