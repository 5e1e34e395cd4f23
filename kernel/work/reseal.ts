import type { Logger, Sealed, SealedBox, SealedPlace, TaskDef } from '@platform/sdk';
import type { PostgresPool } from '../storage/postgres/postgres-pool.ts';
import { taskPurpose } from './sealed-task.ts';

const BATCH = 100;
/** A process of before may run beside the one with the new key while they are exchanged: until then what it seals is looked for. */
const SETTLED = '1 hour';

interface Held {
  readonly id: string;
  readonly name?: string;
  readonly sealed: Sealed;
}
/** Rows under another key after an id, and the purpose each was sealed for. */
interface Shelf {
  readonly named: string;
  readonly stale: (after: string | undefined) => PromiseLike<readonly Held[]>;
  readonly purpose: (held: Held) => string;
  readonly replace: (rows: readonly { readonly id: string; readonly old: Sealed; readonly now: Sealed }[]) => PromiseLike<unknown>;
}
export interface ResealParts {
  readonly service: string;
  readonly tasks: Readonly<Record<string, TaskDef>>;
  readonly pool: PostgresPool;
  readonly log: Logger;
}

/**
 * Seals anew, under the key of now, what lies sealed under one that came before: in the places named, and in tasks that wait or lie dead.
 * Row by row and in place of the very seal that was read, so it may be ended and begun again. It is through when a walk found the end an
 * hour after the change; from then on it costs one look, and the keys before may be dropped.
 */
export async function reseal(
  parts: ResealParts,
  key: { readonly name: string; readonly box: SealedBox },
  places: readonly SealedPlace[],
  signal: AbortSignal,
): Promise<void> {
  const { sql } = parts.pool;
  const { name, box } = key;
  const [record] = await sql<{ kid: string; resealed: string | null; settled: boolean }[]>`
    select kid, resealed, since < now() - ${SETTLED}::interval as settled from service_keys where name = ${name}`;
  // A process with the key of before leaves this to those with the new one.
  if (record?.kid !== box.kid || record.resealed === box.kid) return;
  const sealing = Object.keys(parts.tasks).filter(task => parts.tasks[task]?.sealed === name);
  for (const shelf of [...places.map(place => column(parts.pool, box.kid, place)), waiting(parts, box.kid, sealing)])
    await walk(parts.log, key, shelf, signal);
  if (signal.aborted || !record.settled) return;
  await sql`update service_keys set resealed = kid where name = ${name} and kid = ${box.kid}`;
  parts.log.info(
    { key: name },
    'everything that is kept lies sealed under the key of now: those before it may be dropped from the settings',
  );
}

async function walk(
  log: Logger,
  { name, box }: { readonly name: string; readonly box: SealedBox },
  shelf: Shelf,
  signal: AbortSignal,
): Promise<void> {
  let [anew, lost] = [0, 0];
  let after: string | undefined;
  let rows: readonly Held[];
  do {
    rows = await shelf.stale(after);
    const opened = rows.map(held => ({ held, text: box.open(shelf.purpose(held), held.sealed) }));
    const found = opened.flatMap(({ held, text }) =>
      text === undefined ? [] : [{ id: held.id, old: held.sealed, now: box.seal(shelf.purpose(held), text) }],
    );
    if (found.length > 0) await shelf.replace(found);
    anew += found.length;
    lost += rows.length - found.length;
    after = rows.at(-1)?.id;
  } while (rows.length === BATCH && !signal.aborted);
  if (anew > 0) log.info({ key: name, where: shelf.named, count: anew }, 'sealed anew under the key of now');
  if (lost > 0)
    log.error(
      { key: name, where: shelf.named, count: lost },
      'something sealed opens under no key that the settings name; it stays as it is',
    );
}

/** A column of a table, in the order of its primary key. */
function column({ raw }: PostgresPool, kid: string, { table, id, type = 'uuid', column: sealed, purpose }: SealedPlace): Shelf {
  const [from, key, value] = [raw(table), raw(id), raw(sealed)];
  const idType = type === 'uuid' ? raw`uuid` : raw`text`;
  return {
    named: table,
    purpose: held => purpose(held.id),
    stale: after =>
      raw<Held[]>`select ${key}::text as id, ${value} as sealed from ${from} where ${value} ->> 'kid' <> ${kid} ${
        after === undefined ? raw`` : raw`and ${key} > ${after}`
      } order by ${key} limit ${BATCH}`,
    replace: rows =>
      raw`update ${from} as kept set ${value} = anew.now from jsonb_to_recordset(${raw.json(rows as never)}) as anew(id ${idType},
        old jsonb, now jsonb) where kept.${key} = anew.id and kept.${value} = anew.old`,
  };
}

function waiting({ service, pool: { raw } }: ResealParts, kid: string, names: readonly string[]): Shelf {
  return {
    named: 'tasks',
    purpose: held => taskPurpose(service, held.name as string),
    stale: after =>
      raw<Held[]>`
        select task_id as id, name, payload -> 'sealed' as sealed from work_tasks
        where name = any(${names as string[]}::text[]) and state in ('waiting', 'dead')
          and payload -> 'sealed' ->> 'kid' <> ${kid} ${after === undefined ? raw`` : raw`and task_id > ${after}`}
        order by task_id limit ${BATCH}`,
    replace: rows =>
      raw`
        update work_tasks as kept set payload = jsonb_build_object('sealed', anew.now)
          from jsonb_to_recordset(${raw.json(rows as never)}) as anew(id uuid, old jsonb, now jsonb)
        where kept.task_id = anew.id and kept.payload -> 'sealed' = anew.old`,
  };
}
