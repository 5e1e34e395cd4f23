const LIMIT = 40;

/** What a name becomes as a slug while it is typed; an empty string when nothing of it can stand in one. */
export function slugOf(name: string): string {
  const plain = name
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');
  const led = /^[0-9]/.test(plain) ? `x-${plain}` : plain;
  return led.slice(0, LIMIT).replace(/-+$/, '');
}

export function isSlug(slug: string): boolean {
  return /^[a-z][a-z0-9-]{1,38}[a-z0-9]$/.test(slug);
}
