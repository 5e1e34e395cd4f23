import type { Figures } from '../../contract/schema/runtime.ts';
import type { Ctx } from '../context.ts';

/** What the first page of the store shows of an environment. */
export async function figuresOf({ db: { sql } }: Ctx, envId: string): Promise<Figures> {
  const [counts] = await sql<[Omit<Figures, 'items'>]>`
    select (select count(*)::int from listings where env_id = ${envId}) as listings,
      (select count(*)::int from listings where env_id = ${envId} and status = 'published') as published,
      (select count(*)::int from instances where env_id = ${envId} and status in ('active', 'suspended')) as instances,
      (select count(*)::int from instances where env_id = ${envId} and status in ('onboarding', 'provisioning')) as waiting`;
  const items = await sql<
    Figures['items']
  >`select app_slug as app, count(*)::int as installs from instances where env_id = ${envId} and open group by 1 order by 2 desc, 1
    limit 20`;
  return { ...counts, items: [...items] };
}
