import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { invitationReference } from './invitation-reference.ts';

test('F-51 an invitation is named by the hash of its token', async () => {
  for (const token of ['a', 'kZ3-_x', 'ä'.repeat(50)]) expect(await invitationReference(token)).toBe(createHash('sha256').update(token).digest('base64url'));
});
