const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyz';

/** `dsh-{epoch ms}-{8 base36}`; one per user action. */
export function correlationId(now = Date.now(), random: () => number = Math.random): string {
  let tail = '';
  for (let i = 0; i < 8; i++) tail += ALPHABET[Math.floor(random() * 36)];
  return `dsh-${now}-${tail}`;
}
