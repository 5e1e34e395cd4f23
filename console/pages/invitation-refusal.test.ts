import { expect, test } from 'vitest';
import { invitationRefusal } from './invitation-refusal.ts';

test.each([
  'invitation_unknown',
  'invitation_revoked',
  'invitation_expired',
  'invitation_already_accepted',
  'invitation_email_mismatch',
  'access_model_missing',
  'org_suspended',
  'record_archived',
  'identity_unavailable',
  'members_busy',
])('%s is told in words of its own, without its code', code => {
  const refusal = invitationRefusal(code);
  expect(refusal?.title.length).toBeGreaterThan(10);
  expect(`${refusal?.title} ${refusal?.text}`).not.toMatch(/_|\d{3}/);
});

test('anything else is left as it is', () => {
  expect(invitationRefusal('unreachable')).toBeUndefined();
});
