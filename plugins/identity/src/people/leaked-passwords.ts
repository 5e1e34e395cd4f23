import { dictionary } from '@zxcvbn-ts/language-common';

/** How many characters around a leaked password make it another one: a year, a counter, a mark at the end are the first that are tried. */
const DECORATION = 6;
const LOOK_ALIKES: Readonly<Record<string, string>> = {
  '@': 'a',
  '4': 'a',
  '3': 'e',
  '1': 'i',
  '!': 'i',
  '0': 'o',
  $: 's',
  '5': 's',
  '7': 't',
};
const LEAST = 4;

/**
 * The passwords found most often in published leaks, some fifty thousand. They are here, so that nobody is asked about anybody's password.
 */
const LEAKED: ReadonlySet<string> = new Set(dictionary['passwords-common'] as readonly string[]);

/** Whether a password is a leaked one: as it stands, spelt with look-alikes, decorated at its ends, or written several times. */
export function isLeaked(password: string): boolean {
  const plain = password.toLowerCase();
  const spellings = new Set([plain, [...plain].map(char => LOOK_ALIKES[char] ?? char).join('')]);
  for (const spelling of [...spellings]) spellings.add(spelling.replaceAll(/[\s_.-]/g, ''));
  return [...spellings].some(spelling => isDecorated(spelling) || isRepeated(spelling));
}

function isDecorated(text: string): boolean {
  for (let cut = 0; cut <= DECORATION; cut++) {
    for (let start = 0; start <= cut; start++) {
      const end = text.length - (cut - start);
      const around = text.slice(0, start) + text.slice(end);
      // Letters around it make another word of it.
      if (end - start >= LEAST && !/\p{L}/u.test(around) && LEAKED.has(text.slice(start, end))) return true;
    }
  }
  return false;
}

function isRepeated(text: string): boolean {
  for (let length = LEAST; length <= text.length / 2; length++) {
    const part = text.slice(0, length);
    if (LEAKED.has(part) && text === part.repeat(Math.ceil(text.length / length)).slice(0, text.length)) return true;
  }
  return false;
}
