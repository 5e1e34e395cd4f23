/** An event whose producer gave it no key has this until its group is committed. */
export const NO_KEY = '';

const MINTED = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(\d{1,4})$/;

/**
 * The key that the bus mints (G-BUS-01): the group an event was committed in and its place there, `<group>.<position>`. Nobody can have
 * used it before and the place is in it, so that no table has to remember it.
 */
export const mintedKey = (group: string, position: number): string => `${group}.${position}`;

/** Where the event lies that has this key, if the key is one that the bus may have minted. */
export function placeOf(key: string): { readonly group: string; readonly position: number } | undefined {
  const [, group, position] = MINTED.exec(key) ?? [];
  return group === undefined ? undefined : { group, position: Number(position) };
}
