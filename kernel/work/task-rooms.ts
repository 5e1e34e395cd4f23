import type { TaskDef } from '@platform/sdk';

const SLOTS = 8;
const ABREAST = 4;

type Defined = Readonly<Record<string, { readonly def: TaskDef }>>;

/** Places for tasks of some names: those that share, or one that has its own. */
export interface Room {
  readonly names: readonly string[];
  readonly slots: number;
  /** The fewest that any of these tasks lets a lane have at once. */
  readonly abreast: number;
  /** The lane that was served last. */
  after: string | undefined;
}

const abreastOf = (tasks: Defined, name: string): number => tasks[name]?.def.abreast ?? ABREAST;

/** One room for all tasks without slots of their own, and one for each of the others. */
export function roomsOf(tasks: Defined, slots = SLOTS): readonly Room[] {
  const names = Object.keys(tasks);
  const shared = names.filter(name => tasks[name]?.def.slots === undefined);
  const room = (members: readonly string[], places: number): Room => ({
    names: members,
    slots: places,
    abreast: Math.min(...members.map(name => abreastOf(tasks, name))),
    after: undefined,
  });
  const own = names.filter(name => !shared.includes(name)).map(name => room([name], tasks[name]?.def.slots ?? 1));
  return [...(shared.length > 0 ? [room(shared, slots)] : []), ...own];
}

/** How many of these tasks each lane has under way. */
export const byLane = (underWay: readonly { readonly lane: string }[]): Record<string, number> =>
  Object.fromEntries([...Map.groupBy(underWay, ({ lane }) => lane)].map(([lane, of]) => [lane, of.length]));

/** Lanes that have as many of these tasks under way as they may. */
export function busyLanes(tasks: Defined, underWay: readonly { readonly name: string; readonly lane: string }[]): string[] {
  const counts = new Map<string, { held: number; most: number }>();
  for (const { name, lane } of underWay) {
    const most = abreastOf(tasks, name);
    const known = counts.get(lane) ?? { held: 0, most };
    counts.set(lane, { held: known.held + 1, most: Math.min(known.most, most) });
  }
  return [...counts].filter(([, { held, most }]) => held >= most).map(([lane]) => lane);
}
