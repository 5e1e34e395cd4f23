import { KNOWN_DAYS } from './account/arrival.ts';
import type { Ctx } from './context.ts';

/** Deletes what nobody can use any more. Refresh tokens that were used stay until they would have expired: a replay must be recognised. */
export async function forgetExpired({ db }: Ctx): Promise<void> {
  await db.sql`delete from oidc_state where expires_at < now() - interval '1 hour'`;
  await db.sql`delete from step_tokens where expires_at < now() - interval '1 day'`;
  await db.sql`delete from authenticators where confirmed_at is null and begun_at < now() - interval '1 day'`;
  // Seven days of a session and thirty of its refresh token.
  await db.sql`delete from session_devices where opened_at < now() - interval '38 days'`;
  await db.sql`delete from account_devices where seen_at < now() - make_interval(days => ${KNOWN_DAYS + 1})`;
  await db.sql`delete from passkey_challenges where expires_at < now()`;
  await db.sql`delete from upstream_flows where expires_at < now()`;
  await db.sql`delete from consent_offers where expires_at < now()`;
  await db.sql`delete from grant_selections where expires_at < now()`;
  await db.sql`delete from wallet_challenges where expires_at < now()`;
  await db.sql`delete from own_audit where ts < now() - interval '30 days'`;
  await db.sql`delete from account_recoveries where ended_at < now() - interval '30 days'
    or (confirmed_at is null and expires_at < now() - interval '1 day')`;
  await db.sql`delete from revocations where expires_at < now()`;
}
